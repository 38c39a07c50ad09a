// The frames by which a node comes back into a run that is on without it, or into one that it was never in, and by
// which one leaves it without the loss of a step (DESIGN.md, section 6b; daemon/membership/admission.h). Values; part
// of frame.h, which says what is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schema/described/rule.h"
#include "schema/frame/start_frames.h"
#include "schema/frame/view_frames.h"
#include "schema/limits.h"

namespace tg::schema {

// To all nodes, again and again: the sender wants to be a member. Its header has neither run nor view.
struct Join {
  std::string run_id;
  bool prepared = false;                  // it has data, model and engine
  Vote vote = {};                         // then: what it has; its directory and incarnation always
  std::vector<std::uint32_t> hears = {};  // seats that it hears and that hear it
};
void fields(Is<Join> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("prepared", it.prepared);
  field("vote", it.vote);
  field("hears", it.hears, list(kMaxMembers, up_to(kMaxMembers - 1)));
}
inline std::string odd(const Join& it) { return odd(it.vote); }

// The answer of the most senior member to who is not prepared: what to prepare. Its header has the run and its view.
struct Invite {
  std::string run_id;
  std::string spec;                         // canonical job
  std::vector<std::uint16_t> weights = {};  // of all nodes, by seat
  std::uint64_t global_batch = 0;
  std::uint32_t lineage = 1;
  NextView view = {};  // the present one
  Commit choice = {};  // how the run exchanges gradients
};
void fields(Is<Invite> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("spec", it.spec, lines(kMaxSpecBytes));
  field("weights", it.weights, list(kMaxMembers, between(1, kMaxWeight)));
  field("global_batch", it.global_batch, up_to(kMaxBatch));
  field("lineage", it.lineage);
  field("view", it.view);
  field("choice", it.choice);
}
inline std::string odd(const Invite& it) { return it.view.number == 0 ? "a view that is none" : odd(it.view); }

// The senior's word to all members and to the newcomer, each second while it is fed, and when that is over.
struct Hold {
  std::uint32_t seat = 0;          // of the newcomer
  std::uint64_t done = 0, of = 0;  // bytes that it has
  bool over = false;               // nobody joins: the members go on with the next step
  std::string why = {};            // it is over; to a newcomer also without a hold: why not now
};
void fields(Is<Hold> auto& it, auto&& field) {
  field("seat", it.seat, up_to(kMaxMembers - 1));
  field("done", it.done);
  field("of", it.of);
  field("over", it.over);
  field("why", it.why, line(kMaxReasonBytes));
}

// The senior to the newcomer: all members hold this state. What follows is one sequence of bytes: these parts.
struct Feed {
  StateId state;
  std::vector<std::uint64_t> parts = {};  // their bytes: daemon/step/feed.h
};
void fields(Is<Feed> auto& it, auto&& field) {
  field("state", it.state);
  field("parts", it.parts, list(kMaxFeedParts));
}

// The newcomer has all bytes before this one, and takes one window more. again: send from here.
struct Want {
  std::uint64_t from = 0;
  bool again = false;
};
void fields(Is<Want> auto& it, auto&& field) {
  field("from", it.from);
  field("again", it.again);
}

struct FeedSlice {
  std::uint64_t at = 0;
  std::span<const std::byte> payload;  // aliases the decoded bytes
};

// The newcomer has the state, by its digest.
struct Fed {
  StateId state;
  std::vector<std::uint32_t> hears = {};
};
void fields(Is<Fed> auto& it, auto&& field) {
  field("state", it.state);
  field("hears", it.hears, list(kMaxMembers, up_to(kMaxMembers - 1)));
}

// A member to the most senior one, again and again: it is to leave the view, where all hold one confirmed state.
struct Leave {};
void fields(Is<Leave> auto&, auto&&) {}

}  // namespace tg::schema

// The frames with which a node joins an active run, whether it was a member before or not, and with which a member
// leaves it without losing a step (DESIGN.md, section 6b; daemon/membership/admission.h). Values; frame.h, which
// includes this file, says what is checked.
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

// Asks all nodes, repeatedly, to let the sender join. Its header has neither run nor view.
struct Join {
  std::string run_id;
  bool prepared = false;                  // the sender has data, model and engine
  Vote vote = {};                         // hashes and rates if prepared; directory and incarnation always
  std::vector<std::uint32_t> hears = {};  // seats with a working link in both directions
};
void fields(Is<Join> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("prepared", it.prepared);
  field("vote", it.vote);
  field("hears", it.hears, list(kMaxMembers, up_to(kMaxMembers - 1)));
}
inline std::string validation_error(const Join& it) { return validation_error(it.vote); }

// The most senior member's answer to a joiner that is not prepared: the run to prepare. Its header has run and view.
struct Invite {
  std::string run_id;
  std::string spec;                         // canonical job
  std::vector<std::uint16_t> weights = {};  // all nodes' weights, by seat
  std::uint64_t global_batch = 0;
  std::uint32_t lineage = 1;
  NextView view = {};  // the present view
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
inline std::string validation_error(const Invite& it) {
  return it.view.number == 0 ? "a view without a number" : validation_error(it.view);
}

// The senior member tells the members and the joiner, each second, how far the state's transfer is, and when it is
// over.
struct Hold {
  std::uint32_t seat = 0;          // the joiner's
  std::uint64_t done = 0, of = 0;  // bytes that the joiner has, and all
  bool over = false;               // no node joins: the members begin the next step
  std::string why = {};            // why it is over; a joiner may get it at once: why it cannot join now
};
void fields(Is<Hold> auto& it, auto&& field) {
  field("seat", it.seat, up_to(kMaxMembers - 1));
  field("done", it.done);
  field("of", it.of);
  field("over", it.over);
  field("why", it.why, line(kMaxReasonBytes));
}

// The senior member tells the joiner which state all members hold. Its parts follow as one sequence of bytes.
struct Feed {
  StateId state;
  std::vector<std::uint64_t> parts = {};  // bytes of each part (daemon/step/feed.h)
};
void fields(Is<Feed> auto& it, auto&& field) {
  field("state", it.state);
  field("parts", it.parts, list(kMaxFeedParts));
}

// The joiner has all bytes before `from`, and requests one window more. again: send from there once more.
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

// The joiner has the whole state, and computed its digest.
struct Fed {
  StateId state;
  std::vector<std::uint32_t> hears = {};
};
void fields(Is<Fed> auto& it, auto&& field) {
  field("state", it.state);
  field("hears", it.hears, list(kMaxMembers, up_to(kMaxMembers - 1)));
}

// A member asks the most senior one, repeatedly, to leave the view, which it does where all hold one confirmed state.
struct Leave {};
void fields(Is<Leave> auto&, auto&&) {}

}  // namespace tg::schema

// The frames by which a node joins an active run, and by which a member leaves one without the loss of a step
// (DESIGN.md, section 6b; daemon/membership/admission.h). Values; frame.h, which includes this file, says what is
// checked.
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

// Sent to all nodes repeatedly: the sender asks to become a member. Its header has neither run nor view.
struct Join {
  std::string run_id;
  bool prepared = false;                    // the sender has data, model and engine
  Vote vote = {};                           // hashes and rates if prepared; directory and incarnation always
  std::vector<std::string> reachable = {};  // nodes with frames both ways
};
void fields(Is<Join> auto& it, auto&& field) {
  field("run_id", it.run_id, run_id());
  field("prepared", it.prepared);
  field("vote", it.vote);
  field("reachable", it.reachable, list(kMaxMembers, node_name()));
}
inline std::string validation_error(const Join& it) { return validation_error(it.vote); }

// The senior's answer to a node that is not prepared: the run to prepare. Its header has the run and its view.
struct Invite {
  std::string run_id;
  std::string spec;                         // canonical job
  std::vector<std::uint16_t> weights = {};  // by the view's seats
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

// The senior sends it to all members and to the joiner, each second while the members are quiesced, and at the release.
struct Quiesce {
  std::string node;                // the joiner
  std::uint64_t done = 0, of = 0;  // bytes that the joiner has, and all
  bool over = false;               // release: the members begin the next step
  std::string why = {};            // the cause of a release; to a joiner also a refusal
};
void fields(Is<Quiesce> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("done", it.done);
  field("of", it.of);
  field("over", it.over);
  field("why", it.why, line(kMaxReasonBytes));
}

// Tells the joiner which state all members hold. The snapshot is one sequence of bytes, in these parts.
struct SnapshotOffer {
  StateId state;
  std::vector<std::uint64_t> parts = {};  // bytes of each part (daemon/step/snapshot.h)
};
void fields(Is<SnapshotOffer> auto& it, auto&& field) {
  field("state", it.state);
  field("parts", it.parts, list(kMaxSnapshotParts));
}

// The joiner has all bytes before `from`, and requests one window more. again: send from there once more.
struct SnapshotRequest {
  std::uint64_t from = 0;
  bool again = false;
};
void fields(Is<SnapshotRequest> auto& it, auto&& field) {
  field("from", it.from);
  field("again", it.again);
}

struct SnapshotChunk {
  std::uint64_t at = 0;
  std::span<const std::byte> payload;  // aliases the decoded bytes
};

// The joiner has the state, and its digest is right.
struct SnapshotDone {
  StateId state;
  std::vector<std::string> reachable = {};
};
void fields(Is<SnapshotDone> auto& it, auto&& field) {
  field("state", it.state);
  field("reachable", it.reachable, list(kMaxMembers, node_name()));
}

// A member asks the senior, repeatedly, to leave the view, which it does where all hold one confirmed state.
struct Leave {};
void fields(Is<Leave> auto&, auto&&) {}

}  // namespace tg::schema

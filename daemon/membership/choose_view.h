// The coordinator's choice of the next view (view_change.h), and the message while there is no quorum. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/peers.h"
#include "daemon/membership/view.h"
#include "schema/frame/view_frames.h"

namespace tg::daemon {

using Promises = std::vector<std::pair<Seat, schema::Promise>>;

// A joiner that has the snapshot of `step` (admission.h).
struct ReadyJoiner {
  schema::ViewMember member;  // as in the next view, which gives it its seat
  std::uint64_t step = 0;
  std::string name;
};

// The value for a quorum's promises: what was accepted in the highest ballot, for it may be decided. Otherwise the view
// of the eligible members with state; of two that do not reach each other, the one that lacks most links is dropped, of
// equals the least senior. It starts at the least step that any promise has committed. Nothing: no member is eligible.
// The joiner is added only if nothing else changes: every member promises with the joiner's step, and reaches it.
std::optional<schema::NextView> choose_view(const View& view, const Promises& promises, const std::string& why,
                                            const std::optional<ReadyJoiner>& joiner = {});

bool reaches(const schema::Promise& promise, const std::string& node);

// Whether all eligible members reach each other: otherwise one would be evicted for a broken link.
bool all_linked(const View& view, const Promises& promises);

// "quorum lost: 2 of 4 voters reachable; resumes when node-a or node-c returns". absent: with a vote.
std::string quorum_lost_text(const View& view, const std::vector<Seat>& reachable, const std::vector<Seat>& absent,
                             const Peers& peers);

}  // namespace tg::daemon

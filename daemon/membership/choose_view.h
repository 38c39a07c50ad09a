// What a leader of a view change proposes (view_change.h), and what is said while nobody can. Pure.
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

// A node that is no member yet and has been given the state of so many steps (admission.h).
struct Newcomer {
  schema::ViewMember member;  // of the next view
  std::uint64_t step = 0;
  std::string name;
};

// Of a quorum's promises: what was accepted in the highest ballot, for it may be decided. Else the view of those who
// have a state in memory, can go on and do not leave; where two of them do not hear each other, without who lacks most
// links, of equals the least senior. It begins with the least step that any promiser has committed. Nothing: nobody is
// left. newcomer: a member as well, where nothing else changes: every member promises, with the newcomer's state, and
// hears it, and nothing is bound.
std::optional<schema::NextView> choose_view(const View& view, const Promises& promises, const std::string& why,
                                            const std::optional<Newcomer>& newcomer = {});

bool hears(const schema::Promise& promise, Seat seat);

// Whether all who could go on hear each other: else somebody would be left out for that.
bool all_linked(const Promises& promises);

// "2 of 4 members are away; the run goes on as soon as node-a or node-c is back"
std::string words_of_absence(const View& view, const std::vector<Seat>& away, const Peers& peers);

}  // namespace tg::daemon

// What a voter of a view knows and says of itself (view_change.h). Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/frame/view_frames.h"
#include "schema/place.h"

namespace tg::daemon {

// The vote: on disk before anybody is told of it. It outlives the process.
struct VoterState {
  std::uint64_t key = 0;       // of the run
  schema::NextView view;       // the newest that was decided; the first one is that of the Commit
  schema::Ballot promised;     // about the view after it; count 0: none
  schema::Ballot accepted_in;  // count 0: nothing was accepted
  schema::NextView accepted;
  bool operator==(const VoterState&) const = default;
};
void fields(schema::Is<VoterState> auto& it, auto&& field) {
  field("key", it.key, schema::plain().digest());
  field("view", it.view);
  field("promised", it.promised);
  field("accepted_in", it.accepted_in);
  field("accepted", it.accepted);
}

// How this node stands at the moment in which it freezes: it commits nothing in this view any more.
struct Standing {
  bool has_state = false;        // in memory
  std::uint64_t step = 0;        // of so many committed steps
  std::string unfit = {};        // why it cannot go on in the next view; empty: it can
  bool leaves = false;           // it is being shut down
  std::vector<Seat> hears = {};  // other nodes, where frames come through both ways
  bool goes_back = true;         // it can undo the last one of its steps
};

// When this node's part of a change came about, on the clock of its events.
struct ChangeTimes {
  std::uint64_t noticed_ms = 0;   // the first reason
  std::uint64_t promised_ms = 0;  // it froze; 0: it did not
  std::uint64_t decided_ms = 0;   // it learned what was decided
};

}  // namespace tg::daemon

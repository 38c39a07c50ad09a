// A voter's durable state and its reports (view_change.h). Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/frame/view_frames.h"
#include "schema/place.h"

namespace tg::daemon {

// A node as a voter. A wiped state directory is another voter; a restarted process has lost its state in memory.
struct VoterId {
  std::uint64_t directory = 0, incarnation = 0;
};

// A voter's durable state: on disk before any message depends on it. It outlives the process.
struct VoterState {
  std::uint64_t run_key = 0;
  schema::NextView view;       // the newest decided; the first is the Commit's
  schema::Ballot promised;     // on the view after it; count 0: none
  schema::Ballot accepted_in;  // count 0: nothing was accepted
  schema::NextView accepted;
  std::uint64_t writes = 0;  // times that it was written, this one included
  bool operator==(const VoterState&) const = default;
};
void fields(schema::Is<VoterState> auto& it, auto&& field) {
  field("key", it.run_key, schema::plain().digest());
  field("view", it.view);
  field("promised", it.promised);
  field("accepted_in", it.accepted_in);
  field("accepted", it.accepted);
  field("writes", it.writes);
}

// A node's report when it seals its view: it commits nothing in that view any more.
struct SealReport {
  bool has_state = false;            // in memory
  std::uint64_t step = 0;            // committed
  std::string unfit = {};            // why it is ineligible for the next view; empty: eligible
  bool leaving = false;              // shutting down
  std::vector<Seat> reachable = {};  // nodes with frames both ways
  bool can_undo = true;              // its last step can be undone
};

// When this node's part of a view change happened, on the clock of its events.
struct ChangeTimes {
  std::uint64_t noticed_ms = 0;   // the first reason
  std::uint64_t promised_ms = 0;  // 0: none
  std::uint64_t decided_ms = 0;   // the decision was learned
};

}  // namespace tg::daemon

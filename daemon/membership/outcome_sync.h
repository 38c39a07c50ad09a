// OutcomeSync brings the records of past runs into agreement: members that were lost report what they have, a member
// that died asks the others how the run ended, and every member with a record answers. Reports of an earlier run key
// are ignored once the run is resumed. Pure; part of Membership.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "daemon/membership/run_outcome.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct SendFrame {
  std::vector<Seat> to;
  schema::FrameHeader header;
  schema::FrameBody body;
};
struct RecordEnd {  // updates the record of a past run
  std::uint64_t run_key = 0;
  RunOutcome end;
};
using OutcomeSyncStep = std::variant<SendFrame, RecordEnd>;

struct PastRun {
  std::string id;
  Per<Seat, bool> members;  // who may need the outcome
  RunOutcome end;
  std::vector<Seat> known = {};  // members of recorded views
};

class OutcomeSync {
 public:
  explicit OutcomeSync(Seat self) : self_(self) {}

  // The run is resumed: its earlier run keys count no more.
  void forget(const std::string& id) {
    std::erase_if(runs_, [&](const auto& run) { return run.second.id == id; });
  }
  void add(std::uint64_t run_key, PastRun run) { runs_[run_key] = std::move(run); }
  void on_connected(Seat peer);  // queries its outcome, or sends it a newer one
  void on_ended(Seat from, std::uint64_t run_key, const schema::Ended& ended);
  void on_saved(std::uint64_t run_key, const schema::Ended& own);  // this node's saved state changed
  void answer(Seat from, std::uint64_t run_key);                   // to a peer that continues a run which has ended
  const PastRun* find(std::uint64_t run_key) const {
    const auto found = runs_.find(run_key);
    return found == runs_.end() ? nullptr : &found->second;
  }
  std::vector<OutcomeSyncStep> take_actions() { return std::exchange(actions_, {}); }

 private:
  void send(const std::vector<Seat>& to, std::uint64_t run_key, const PastRun& run, bool asks);

  const Seat self_;
  std::map<std::uint64_t, PastRun> runs_;  // by run key; one for each record
  std::vector<OutcomeSyncStep> actions_;
};

}  // namespace tg::daemon

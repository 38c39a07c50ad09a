// News of a run after its verdict: members that were lost come back and tell what they have, and a member that died
// asks the others how the run ended. Every member with a record answers, so in the end all records agree. A resume is a
// new beginning: what is told of the run's earlier keys changes nothing any more. Pure; part of Membership.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "daemon/membership/run_end.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct SendFrame {
  std::vector<Seat> to;
  schema::FrameHeader header;
  schema::FrameBody body;
};
struct RecordEnd {  // more is known of a run that has a record: put it there
  std::uint64_t key = 0;
  RunEnd end;
};
using AftermathAction = std::variant<SendFrame, RecordEnd>;

struct PastRun {
  std::string id;
  Per<Seat, bool> members;
  RunEnd end;
};

class Aftermath {
 public:
  explicit Aftermath(Seat self) : self_(self) {}

  // Of an earlier key of this run nothing counts any more.
  void begins_anew(const std::string& id) {
    std::erase_if(runs_, [&](const auto& run) { return run.second.id == id; });
  }
  void add(std::uint64_t key, PastRun run) { runs_[key] = std::move(run); }
  void connected(Seat peer);  // asks it what is not known of it, tells it what it does not know
  void heard(Seat from, std::uint64_t key, const schema::Ended& ended);
  void saved(std::uint64_t key, const schema::Ended& own);  // more became of the own state
  void asked(Seat from, std::uint64_t key);                 // it goes on with a run whose end is known here
  const PastRun* find(std::uint64_t key) const {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second;
  }
  std::vector<AftermathAction> take_actions() { return std::exchange(actions_, {}); }

 private:
  void tell(const std::vector<Seat>& to, std::uint64_t key, const PastRun& run, bool asks);

  const Seat self_;
  std::map<std::uint64_t, PastRun> runs_;  // by key; as many as there are records
  std::vector<AftermathAction> actions_;
};

}  // namespace tg::daemon

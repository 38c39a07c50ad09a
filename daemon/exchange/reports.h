// The reports that members exchange after certain rounds: an evaluation, the last round, a stop. Each describes the
// member's state, so that a run ends only if all replicas agree. Pure; owned by the thread that owns the Member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "daemon/exchange/members.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class Reports {
 public:
  explicit Reports(const Members& members) : members_(members) {}

  // Why the report ends the run, if it does. committed: this member's rounds; a report is about that state or the next.
  std::optional<schema::Fail> on_report(Rank from, Round round, const schema::Report& report, Round committed);
  // This many rounds are committed: reports of older states are dropped.
  void forget_before(Round round) { by_round_.erase(by_round_.begin(), by_round_.lower_bound(round)); }

  bool has(Round round, Rank from) const;
  std::vector<Rank> missing(Round round) const;
  // Once all members' reports of the state after `round` rounds have come, returned once: the sums of their counts, or
  // how their states differ.
  struct Sum {
    std::optional<schema::Fail> difference;
    std::uint64_t correct = 0, correct_5 = 0, total = 0;
    double loss_sum = 0;
  };
  std::optional<Sum> take_sum(Round round);

 private:
  const Members& members_;
  std::map<Round, Per<Rank, std::optional<schema::Report>>> by_round_;  // at most two rounds
};

}  // namespace tg::daemon

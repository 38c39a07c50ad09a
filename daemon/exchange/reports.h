// The reports that members exchange after certain steps: an evaluation, the last step, a stop. Each describes the
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

  // Why the report ends the run, if it does. committed: this member's steps; a report is about that state or the next.
  std::optional<schema::Fail> take(Rank from, std::uint64_t step, const schema::Report& report,
                                   std::uint64_t committed);
  // This many steps are committed: reports of older states are dropped.
  void forget_before(std::uint64_t step) { by_step_.erase(by_step_.begin(), by_step_.lower_bound(step)); }

  bool has(std::uint64_t step, Rank from) const;
  std::vector<Rank> missing(std::uint64_t step) const;
  // Once all members' reports of the state after `step` steps have come, returned once: the sums of their counts, or
  // how their states differ.
  struct Sum {
    std::optional<schema::Fail> difference;
    std::uint64_t correct = 0, correct_5 = 0, total = 0;
    double loss_sum = 0;
  };
  std::optional<Sum> take_sum(std::uint64_t step);

 private:
  const Members& members_;
  std::map<std::uint64_t, Per<Rank, std::optional<schema::Report>>> by_step_;  // at most two steps
};

}  // namespace tg::daemon

#include "daemon/exchange/reports.h"

#include <string>

#include "daemon/exchange/compare_digests.h"

namespace tg::daemon {

std::optional<schema::Fail> Reports::take(Rank from, std::uint64_t step, const schema::Report& report,
                                          std::uint64_t committed) {
  if (step != committed && step != committed + 1)
    return members_.cause(from, "evaluate",
                          members_.names[from] + " reports on step " + std::to_string(step) + " while " +
                              members_.own_name() + " has committed " + std::to_string(committed));
  auto& reports = by_step_[step];
  reports.resize(members_.count());
  reports[from] = report;
  return std::nullopt;
}

bool Reports::has(std::uint64_t step, Rank from) const {
  const auto found = by_step_.find(step);
  return found != by_step_.end() && found->second[from].has_value();
}

std::vector<Rank> Reports::missing(std::uint64_t step) const {
  std::vector<Rank> ranks;
  for (const Rank rank : members_.ranks())
    if (!has(step, rank)) ranks.push_back(rank);
  return ranks;
}

std::optional<Reports::Sum> Reports::take_sum(std::uint64_t step) {
  if (!missing(step).empty()) return std::nullopt;
  Sum sum;
  Per<Rank, std::vector<std::uint64_t>> digests;
  for (const auto& report : by_step_[step]) {
    digests.push_back(report->digests);
    sum.correct += report->correct;
    sum.correct_5 += report->correct_5;
    sum.total += report->total;
    sum.loss_sum += report->loss_sum;
  }
  by_step_.erase(step);
  sum.difference =
      compare_digests(members_.names, members_.segment_names, digests, "after step " + std::to_string(step));
  return sum;
}

}  // namespace tg::daemon

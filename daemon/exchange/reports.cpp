#include "daemon/exchange/reports.h"

#include <string>

#include "daemon/exchange/compare_digests.h"

namespace tg::daemon {

std::optional<schema::Fail> Reports::on_report(Rank from, Round round, const schema::Report& report, Round committed) {
  if (round != committed && round != committed.next())
    return members_.cause(from, "evaluate",
                          members_.names[from] + " reports on step " + std::to_string(round.value()) + " while " +
                              members_.own_name() + " has committed " + std::to_string(committed.value()));
  auto& reports = by_round_[round];
  reports.resize(members_.count());
  reports[from] = report;
  return std::nullopt;
}

bool Reports::has(Round round, Rank from) const {
  const auto found = by_round_.find(round);
  return found != by_round_.end() && found->second[from].has_value();
}

std::vector<Rank> Reports::missing(Round round) const {
  std::vector<Rank> ranks;
  for (const Rank rank : members_.ranks())
    if (!has(round, rank)) ranks.push_back(rank);
  return ranks;
}

std::optional<Reports::Sum> Reports::take_sum(Round round) {
  if (!missing(round).empty()) return std::nullopt;
  Sum sum;
  Per<Rank, std::vector<std::uint64_t>> digests;
  for (const auto& report : by_round_[round]) {
    digests.push_back(report->digests);
    sum.correct += report->correct;
    sum.correct_5 += report->correct_5;
    sum.total += report->total;
    sum.loss_sum += report->loss_sum;
  }
  by_round_.erase(round);
  sum.difference = compare_digests(members_, digests, "after step " + std::to_string(round.value()));
  return sum;
}

}  // namespace tg::daemon

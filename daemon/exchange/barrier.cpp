#include "daemon/exchange/barrier.h"

#include <string>

namespace tg::daemon {

std::optional<schema::Fail> Barrier::on_reached(Rank from, Round round, Round committed) {
  if (round != committed && round != committed.next())
    return members_.cause(from, "evaluate",
                          members_.names[from] + " has reached the end of step " + std::to_string(round.value()) +
                              " while " + members_.own_name() + " has committed " + std::to_string(committed.value()));
  auto& reached = by_round_[round];
  reached.resize(members_.count());
  reached[from] = true;
  return std::nullopt;
}

std::vector<Rank> Barrier::missing(Round round) const {
  std::vector<Rank> ranks;
  const auto found = by_round_.find(round);
  for (const Rank rank : members_.ranks())
    if (found == by_round_.end() || !found->second[rank]) ranks.push_back(rank);
  return ranks;
}

}  // namespace tg::daemon

#include "daemon/exchange/barrier.h"

#include <string>

namespace tg::daemon {

std::optional<schema::Fail> Barrier::take(Rank from, std::uint64_t step, std::uint64_t committed) {
  if (step != committed && step != committed + 1)
    return members_.cause(from, "evaluate",
                          members_.names[from] + " has reached the end of step " + std::to_string(step) + " while " +
                              members_.own_name() + " has committed " + std::to_string(committed));
  auto& reached = by_step_[step];
  reached.resize(members_.count());
  reached[from] = true;
  return std::nullopt;
}

std::vector<Rank> Barrier::missing(std::uint64_t step) const {
  std::vector<Rank> ranks;
  const auto found = by_step_.find(step);
  for (const Rank rank : members_.ranks())
    if (found == by_step_.end() || !found->second[rank]) ranks.push_back(rank);
  return ranks;
}

}  // namespace tg::daemon

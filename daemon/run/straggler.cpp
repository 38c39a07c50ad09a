#include "daemon/run/straggler.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<Straggler> singled_out(const std::vector<double>& waits, const WaitTimes& times, Rank self,
                                     double straggling) {
  Rank worst = self;
  for (Rank r = 0; r < waits.size(); ++r)
    if (r != self && (worst == self || waits[r] > waits[worst])) worst = r;
  if (worst == self) return std::nullopt;
  std::vector<double> others;
  for (Rank r = 0; r < waits.size(); ++r)
    if (r != self && r != worst) others.push_back(waits[r]);
  const double usual = std::max(median(std::move(others)), times.late[self]);
  const double least_excess =
      std::max(straggling * times.seconds, kLeastDelaySeconds * static_cast<double>(times.steps));
  if (waits[worst] < 2 * usual || waits[worst] - usual < least_excess) return std::nullopt;
  return Straggler{worst, waits[worst] / times.seconds};
}

}  // namespace

std::optional<Straggler> find_straggler(const WaitTimes& times, Rank self, double straggling) {
  if (times.steps == 0 || times.seconds <= 0) return std::nullopt;
  if (const auto late = singled_out(times.late, times, self, straggling)) return late;
  if (times.waited.size() == 2) return std::nullopt;
  return singled_out(times.waited, times, self, straggling);
}

StragglerWatch::StragglerWatch(std::size_t members, Rank self)
    : self_(self), times_{0, 0, std::vector<double>(members), std::vector<double>(members)} {}

void StragglerWatch::waited(const std::vector<Rank>& ranks, const std::vector<Rank>& late, double seconds) {
  for (const Rank rank : ranks) times_.waited[rank] += seconds / static_cast<double>(ranks.size());
  for (const Rank rank : late) times_.late[rank] += seconds / static_cast<double>(late.size());
}

StragglerWatch::Change StragglerWatch::committed(double seconds) {
  times_.seconds += seconds;
  ++times_.steps;
  if (times_.seconds < least_seconds_ || times_.steps < kLeastSteps) return {};
  const std::size_t members = times_.waited.size();
  const WaitTimes span = std::exchange(times_, {0, 0, std::vector<double>(members), std::vector<double>(members)});
  std::optional<Straggler> found = find_straggler(span, self_);
  if (!found && named_) {
    found = find_straggler(span, self_, kStraggling / 2);
    if (found && found->rank != *named_) found.reset();
  }
  const std::optional<Rank> rank = found ? std::optional(found->rank) : std::nullopt;
  if (rank == named_) return {};
  if (named_) least_seconds_ *= 2;
  return {std::exchange(named_, rank), found};
}

}  // namespace tg::daemon

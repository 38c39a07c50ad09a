#include "daemon/run/straggler.h"

#include <algorithm>
#include <utility>

#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

// `part` of the thresholds is enough.
bool stands_out(const std::vector<double>& waits, const WaitTimes& times, Rank self, Rank peer, double part) {
  std::vector<double> others;
  for (Rank r = 0; r < waits.size(); ++r)
    if (r != self && r != peer) others.push_back(waits[r]);
  const double usual = std::max(median(std::move(others)), times.late[self]);
  const double least_excess =
      std::max(part * kStraggling * times.seconds, kLeastDelaySeconds * static_cast<double>(times.steps));
  return waits[peer] >= (1 + part) * usual && waits[peer] - usual >= least_excess;
}

// The kind of waiting that singles the peer out.
const std::vector<double>* evidence(const WaitTimes& times, Rank self, Rank peer, double part) {
  if (times.steps == 0 || times.seconds <= 0) return nullptr;
  if (stands_out(times.late, times, self, peer, part)) return &times.late;
  const bool two = times.waited.size() == 2;
  return !two && stands_out(times.waited, times, self, peer, part) ? &times.waited : nullptr;
}

}  // namespace

std::optional<Straggler> find_straggler(const WaitTimes& times, Rank self) {
  std::optional<Straggler> worst;
  const std::vector<double>* of_worst = nullptr;
  for (Rank r = 0; r < times.waited.size(); ++r) {
    const std::vector<double>* waits = r == self ? nullptr : evidence(times, self, r, 1);
    if (waits == nullptr || (of_worst == &times.late && waits != of_worst)) continue;
    if (worst && waits == of_worst && (*waits)[r] / times.seconds <= worst->share) continue;
    worst = Straggler{r, (*waits)[r] / times.seconds};
    of_worst = waits;
  }
  return worst;
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
  if (named_ && evidence(span, self_, *named_, kStaysPart) != nullptr) return {};
  const std::optional<Straggler> found = find_straggler(span, self_);
  const std::optional<Rank> rank = found ? std::optional(found->rank) : std::nullopt;
  if (rank == named_) return {};
  if (named_) least_seconds_ *= 2;
  return {std::exchange(named_, rank), found};
}

}  // namespace tg::daemon

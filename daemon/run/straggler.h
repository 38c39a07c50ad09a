// Who holds a run up, as far as one member can know. Waiting alone says little: on a run that the wire bounds everybody
// waits for everybody. Two things single a peer out:
//
//   late    its announcement of a bucket is missing, ours are out, and nothing of it is on the way (Exchange::Waiting)
//   waited  anything of it is missing; with one peer that cannot be told from the link, so it counts from two on
//
// In either of them
//   excess = time waited for the peer - usual
//   usual  = the larger of: the median over the other peers; the time that all others waited for us
//   it is a straggler if  time waited for it >= 2 usual,  excess >= kStraggling of the time,
//                         excess >= kLeastDelaySeconds a step
//
// Alike peers are each other's usual: nobody is named. The slow one itself finds the others' announcements there, or
// waits for all of them alike: it names nobody. Of two nodes whose computing varies each waits for the other, and each
// is waited for: nobody is named. A single trip is waited for by both of two equal nodes, hence the last condition.
//
// A slow link is not told apart between two nodes: it is both's. In the direct exchange, whose codes go to all or to
// none, one full window stops them all; waited for is who leaves it full, not whom it stops in turn.
//
// Pure: no clock; owned by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/membership/membership.h"

namespace tg::daemon {

inline constexpr double kStraggling = 0.1;
// A step. A trip on a switch takes 0.1 to 0.3 ms, waking up included.
inline constexpr double kLeastDelaySeconds = 1e-3;

struct WaitTimes {
  double seconds = 0;  // in all
  std::uint64_t steps = 0;
  std::vector<double> waited, late;  // seconds by rank; late[self]: all others waited for us
};

struct Straggler {
  Rank rank = 0;
  double share = 0;  // of the time, for which it was waited in the way that singles it out
};

// The worst that is singled out, if any is; of the late ones, where there are.
std::optional<Straggler> find_straggler(const WaitTimes& times, Rank self);

// Says once that a straggler begins to hold the run up, and once that this is over. It judges spans of at least
// kLeastSeconds and kLeastSteps, each by itself; whoever was named stays so while singled out by half of that (excess
// half as large, time waited for it 1.5 usual), whoever else may be slower.
// After each end spans are twice as long: k ends take at least (2^k - 1) kLeastSeconds, so T seconds hold at most
// 2 log2(1 + T / kLeastSeconds) + 1 sentences, whatever happens in them (a week: 34).
class StragglerWatch {
 public:
  static constexpr double kLeastSeconds = 5;
  static constexpr std::uint64_t kLeastSteps = 4;
  static constexpr double kStaysPart = 0.5;

  StragglerWatch(std::size_t members, Rank self);

  // So long there was nothing to do but wait for these.
  void waited(const std::vector<Rank>& ranks, const std::vector<Rank>& late, double seconds);
  struct Change {
    std::optional<Rank> over;
    std::optional<Straggler> begun;
  };
  // A step was committed so long after the one before.
  Change committed(double seconds);
  std::optional<Rank> named() const { return named_; }

 private:
  const Rank self_;
  WaitTimes times_;  // of the span
  double least_seconds_ = kLeastSeconds;
  std::optional<Rank> named_;
};

}  // namespace tg::daemon

// A node's metrics for its operators: filled by the node's thread and copied for display (text.h). Counters start with
// the process and never decrease. Times are in seconds, Unix times too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kernels/base/words.h"
#include "schema/control/control.h"
#include "schema/place.h"

namespace tg::daemon {

// The consecutive parts of a step on this node. exchange: from our own gradient's last bucket to the commit, the part
// that computation does not hide. evaluate: until all members have reported.
enum class StepPart : std::uint8_t { kForward, kBackward, kExchange, kEvaluate };
constexpr auto words_of(StepPart) { return words("forward", "backward", "exchange", "evaluate"); }

// Why a frame was rejected: it is malformed; its sender is not a peer; its sender floods; it belongs to a run or view
// that this node is not in.
enum class Rejection : std::uint8_t { kMalformed, kStranger, kFlood, kOtherRun };
constexpr auto words_of(Rejection) { return words("malformed", "stranger", "flood", "other_run"); }

class Histogram {
 public:
  // LeNet's forward takes some milliseconds, a step of AlexNet over 100 Mbit/s some seconds.
  static constexpr std::array<double, 14> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                  0.25,  0.5,    1,     2.5,  5,     10,   30};
  void observe(double seconds) {
    const auto at = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
    ++counts_[static_cast<std::size_t>(at)];
    sum_ += seconds;
  }
  // counts()[i]: observations in bucket i, above the previous bound and up to bound i; the last has no upper bound.
  const std::array<std::uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

struct PeerNumbers {
  bool up = false;                                   // both ports answer, in both directions
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // on the mesh, ZeroMQ framing included
  double wait_seconds = 0;                           // when the node's thread could only wait for the peer
};

struct Numbers {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t steps = 0;          // committed
  std::uint64_t samples = 0;        // this node's share
  double data_wait_seconds = 0;     // time in which the engine had no samples
  double loss = kUnknown;           // the last committed step's, over the global batch
  double nonzero_ratio = kUnknown;  // share of its ternary codes that are not zero
  double accuracy = kUnknown;       // the last evaluation's
  double accuracy_5 = kUnknown;     // the label is among the five highest logits; unknown for five classes or fewer
  std::array<Histogram, words_of(StepPart()).size()> step_parts;
  std::array<std::uint64_t, words_of(Rejection()).size()> rejected{};
  Per<Seat, PeerNumbers> peers;               // unused at this node's seat
  std::optional<schema::RunState> run_state;  // the active run's, or the last one's
  std::uint64_t run_step = 0;
  std::uint64_t view_changes = 0;  // those after which this node continued
  std::uint64_t members_away = 0;  // members of the active run that have left it or are unreachable
  double run_started = 0;          // when the run was committed; 0 = no run yet
  double checkpoint_every = 0;     // the run's checkpoint interval; 0 = no checkpoints
  double saved = 0;                // when a state was last written, a checkpoint or a final one; 0 = never

  void observe(StepPart part, double seconds) { step_parts[static_cast<std::size_t>(part)].observe(seconds); }
};

}  // namespace tg::daemon

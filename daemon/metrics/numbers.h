// A node's counts for its operators: values filled by the node's thread and copied for display (text.h).
// Counters begin with the process and never fall. Times in seconds, Unix times too.
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

// Parts of a step on this node, one after another. exchange: from our own gradient's last bucket to the commit, the
// part that nothing hides. evaluate: until all members have reported.
enum class StepPart : std::uint8_t { kForward, kBackward, kExchange, kEvaluate };
constexpr auto words_of(StepPart) { return words("forward", "backward", "exchange", "evaluate"); }

// Why a frame was rejected: it cannot be read; its sender is not a peer; its sender floods; it belongs to a run or view
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
  // Observations up to bound i, and above the ones below it; the last one is beyond all bounds.
  const std::array<std::uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

struct PeerNumbers {
  bool up = false;                                   // both its ports answer, both ways
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // of the mesh, ZeroMQ framing included
  double wait_seconds = 0;                           // time in which the node's thread could only wait for it
};

struct Numbers {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t steps = 0;          // committed
  std::uint64_t samples = 0;        // of this node's share of them
  double data_wait_seconds = 0;     // time in which the engine had no samples
  double loss = kUnknown;           // of the last committed step, over the global batch
  double nonzero_ratio = kUnknown;  // share of its ternary codes that are not zero
  double accuracy = kUnknown;       // of the last evaluation
  double accuracy_5 = kUnknown;     // the label is among the five highest logits; unknown of five classes or fewer
  std::array<Histogram, words_of(StepPart()).size()> step_parts;
  std::array<std::uint64_t, words_of(Rejection()).size()> rejected{};
  Per<Seat, PeerNumbers> peers;               // the own seat's says nothing
  std::optional<schema::RunState> run_state;  // of the present run, or of the last one
  std::uint64_t run_step = 0;
  std::uint64_t view_changes = 0;  // that this node went on after
  std::uint64_t members_away = 0;  // of the present run: who left it, and who is not heard now
  double run_started = 0;          // when it was committed; 0 = there was none
  double checkpoint_every = 0;     // of that run; 0 = it writes none
  double saved = 0;  // when a state was last written whole: a checkpoint, or a run's last one; 0 = none was

  void observe(StepPart part, double seconds) { step_parts[static_cast<std::size_t>(part)].observe(seconds); }
};

}  // namespace tg::daemon

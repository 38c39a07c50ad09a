// The goal of `wait --for`: a state, the end, or a step. Decides from a run's status whether it is reached. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schema/control/control.h"

namespace tg::ctl {

enum class WaitOutcome : std::uint8_t {
  kWaiting,
  kReached,
  kRunFailed,    // the run FAILED and that was not the goal
  kInterrupted,  // the run is INTERRUPTED and that was not the goal
  kImpossible,   // the run ended in another way and will not reach the goal
};

class WaitGoal {
 public:
  // "completed", "RUNNING", "finished", "step=1000".
  static Result<WaitGoal> parse(std::string_view text);
  WaitOutcome look(const schema::RunStatus& run) const;

 private:
  std::optional<schema::RunState> state_;
  std::optional<std::uint64_t> step_;  // neither: finished
};

}  // namespace tg::ctl

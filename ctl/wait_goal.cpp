#include "ctl/wait_goal.h"

#include <algorithm>
#include <cctype>

#include "schema/text.h"

namespace tg::ctl {

Result<WaitGoal> WaitGoal::parse(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  WaitGoal goal;
  if (lower == "finished") return goal;
  if (lower.starts_with("step=")) {
    goal.step_ = schema::parse_number<std::uint64_t>(std::string_view(lower).substr(5));
    if (goal.step_) return goal;
    return Error{ErrorKind::kUsage, "--for \"" + std::string(text) + "\": step=N needs a whole number"};
  }
  Result<schema::RunState> state = schema::parse_run_state(lower);
  if (!state) return Error{ErrorKind::kUsage, "--for " + state.error().message + ", finished, step=N"};
  goal.state_ = *state;
  return goal;
}

WaitOutcome WaitGoal::look(const schema::RunStatus& run) const {
  const bool reached = state_ ? run.state == *state_ : step_ ? run.step >= *step_ : schema::is_final(run.state);
  // FAILED is an end too, but the exit code has to tell it from a good one.
  const bool wanted_failure = state_ == schema::RunState::kFailed;
  if (run.state == schema::RunState::kFailed && !wanted_failure && !(step_ && reached)) return WaitOutcome::kRunFailed;
  if (reached) return WaitOutcome::kReached;
  if (run.state == schema::RunState::kInterrupted) return WaitOutcome::kInterrupted;
  return schema::is_final(run.state) ? WaitOutcome::kImpossible : WaitOutcome::kWaiting;
}

}  // namespace tg::ctl

#include <algorithm>
#include <chrono>

#include "ctl/format/progress.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "ctl/wait_goal.h"
#include "schema/options/options.h"

namespace tg::ctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kWaitPollMs = 200;

}  // namespace

int wait(Client& client, const Command& command) {
  const Result<WaitGoal> goal = WaitGoal::parse(command.until);
  if (!goal) return fail(goal.error());
  const auto timeout_ms =
      static_cast<std::int64_t>(std::min<std::uint64_t>(command.timeout_ms.value_or(INT64_MAX), INT64_MAX));
  const Clock::time_point begin = Clock::now();
  std::string id;  // "" = not known yet
  RunNotices notices;
  while (true) {
    const Result<schema::RunStatus> run =
        id.empty() ? ask_run(client, command.operand, schema::Pick::kNewest) : poll_run(client, id);
    if (!run) return fail(run.error());
    id = run->id;
    const std::string state(to_word(run->state));
    switch (goal->look(*run)) {
      case WaitOutcome::kReached:
        print(state + "\n");
        if (run->saved_by_all()) return kOk;
        print_note("run " + run->id + " is " + state + ", but " + run->reason);
        return kNotSaved;
      case WaitOutcome::kRunFailed:
      case WaitOutcome::kInterrupted:
        return print_state(*run);
      case WaitOutcome::kImpossible:
        print(state + "\n");
        print_note("run " + run->id + " is " + state + " at step " + std::to_string(run->step) +
                   " and will not reach " + command.until);
        return kError;
      case WaitOutcome::kWaiting:
        if (const std::string text = notices.update(*run); !text.empty()) print_note(text);
        break;
    }
    const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
    const std::int64_t left_ms = timeout_ms - waited_ms;
    if (left_ms <= 0) {
      print(state + "\n");
      print_note("run " + run->id + " is " + state + " at step " + std::to_string(run->step) + " after " +
                 schema::format_duration(*command.timeout_ms));
      return kTimedOut;
    }
    if (!sleep_unless_interrupted(static_cast<int>(std::min(left_ms, kWaitPollMs)))) return kInterrupted;
  }
}

}  // namespace tg::ctl

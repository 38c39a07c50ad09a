#include "schema/options/unused_keys.h"

#include <algorithm>

#include "schema/options/options.h"

namespace tg::schema {
namespace {

bool is_generated(const JobSpec& job) {
  return job.data == DatasetKind::kSynthetic || job.data == DatasetKind::kFractals;
}

bool is_adam(const JobSpec& job) {
  return job.optimizer == OptimizerKind::kAdam || job.optimizer == OptimizerKind::kAdamW;
}

struct Use {
  std::string_view key;
  bool (*used)(const JobSpec&);
  std::string_view by;       // what uses it
  std::string_view depends;  // the key that decides
  std::string_view problem = "has no effect: it is for ";
};
constexpr bool (*kStairs)(const JobSpec&) = [](const JobSpec& job) { return job.schedule == ScheduleKind::kStaircase; };
constexpr Use kUses[] = {
    {"data-dir",
     [](const JobSpec& job) { return !is_generated(job) || !(job.initial.empty() || job.initial.starts_with('/')); },
     "data that are read from files", "data"},
    {"steps", [](const JobSpec& job) { return job.epochs == 0; }, "runs without epochs", "epochs"},
    {"schedule-factor", kStairs, "schedule = staircase", "schedule"},
    {"schedule-every", kStairs, "schedule = staircase", "schedule"},
    {"schedule-power", [](const JobSpec& job) { return job.schedule == ScheduleKind::kPolynomial; },
     "schedule = polynomial", "schedule"},
    {"schedule-floor", [](const JobSpec& job) { return job.schedule != ScheduleKind::kConstant; },
     "a schedule that falls: staircase, polynomial or cosine", "schedule"},
    {"warm-up", [](const JobSpec& job) { return job.epochs > 0 || job.warm_up < job.steps; }, "learning-rate", "steps",
     "leaves no step of the run at "},
    {"momentum", [](const JobSpec& job) { return job.optimizer == OptimizerKind::kMomentum; }, "optimizer = momentum",
     "optimizer"},
    {"beta1", is_adam, "optimizer = adam and adamw", "optimizer"},
    {"beta2", is_adam, "optimizer = adam and adamw", "optimizer"},
    {"epsilon", is_adam, "optimizer = adam and adamw", "optimizer"}};

}  // namespace

std::vector<std::string> unused_keys(const JobSpec& job, std::string_view text, std::string_view file) {
  const Result<std::vector<Assignment>> lines = parse_assignments(text, file);
  const auto line_of = [&](std::string_view key) {
    if (!lines) return 0;
    const auto found = std::ranges::find(*lines, key, &Assignment::key);
    return found == lines->end() ? 0 : found->line;
  };
  const auto value_of = [](std::string_view key, const JobSpec& of) {
    return find_option(job_options(), key)->get(of);
  };
  std::vector<std::string> sentences;
  for (const Use& use : kUses) {
    const int line = line_of(use.key), decided = line_of(use.depends);
    // A file may list every key with its default; of steps and epochs in one file, though, one was meant.
    const bool set =
        use.key == "steps" ? line > 0 && decided > 0 : value_of(use.key, job) != value_of(use.key, JobSpec());
    if (!set || use.used(job)) continue;
    sentences.push_back((line == 0 ? "" : std::string(file) + ":" + std::to_string(line) + ": ") +
                        std::string(use.key) + " = " + value_of(use.key, job) + " " + std::string(use.problem) +
                        std::string(use.by) + "; " + std::string(use.depends) + " is " + value_of(use.depends, job) +
                        (decided == 0 ? "" : " (line " + std::to_string(decided) + ")"));
  }
  return sentences;
}

}  // namespace tg::schema

#include "schema/options/resumed_job.h"

#include <algorithm>

#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

// Unknown keys are named where they are set.
Status check_key(const std::string& key) {
  const Option<JobSpec>* row = find_option(job_options(), key);
  if (row == nullptr || row->resumable) return {};
  return Error{ErrorKind::kUsage,
               key + " cannot change: what the run has trained so far came from it. A resume may set " +
                   resumable_keys() + "; for another " + key + " start a new run"};
}

}  // namespace

std::string resumable_keys() {
  std::string text;
  for (const Option<JobSpec>& row : job_options())
    if (row.resumable) text += (text.empty() ? "" : ", ") + row.name;
  return text;
}

Status check_resumed_settings(const std::vector<std::string>& assignments) {
  JobSpec scratch;
  for (const std::string& assignment : assignments) {
    if (const Status status = set_job_key(scratch, assignment); !status) return status;
    std::string key = assignment.substr(0, assignment.find('='));
    std::erase(key, ' ');
    if (const Status status = check_key(key); !status) return status;
  }
  return {};
}

Result<JobSpec> resumed_job(const JobSpec& before, std::string_view settings) {
  const Result<std::vector<Assignment>> assignments = parse_assignments(settings, "--set");
  if (!assignments) return assignments.error();
  JobSpec job = before;
  for (const Assignment& one : *assignments) {
    if (const Status status = check_key(one.key); !status) return status.error();
    if (const Status status = override_job_key(job, one.key + "=" + one.value); !status) return status.error();
  }
  return job;
}

Status may_resume(const RunStatus& run, const JobSpec& job, std::optional<std::uint64_t> from_step) {
  const std::string state(to_word(run.state));
  if (run.state == RunState::kPaused)
    return Error{ErrorKind::kRefused, "run " + run.id + " is PAUSED: " + run.reason +
                                          "; to wait no longer: tgctl stop " + run.id + ", then tgctl resume " +
                                          run.id + ", with --without NODE for each node that is away"};
  if (!has_ended(run.state))
    return Error{ErrorKind::kRefused, "run " + run.id + " is " + state +
                                          "; there is nothing to resume, and tgctl status " + run.id + " shows it"};
  const std::uint64_t begin = from_step.value_or(run.step);
  JobSpec resolved = job;
  if (run.training_samples > 0 && run.global_batch > 0) {
    const Result<std::uint64_t> steps = resolved_steps(job, run.training_samples, run.global_batch);
    if (!steps) return steps.error();
    resolved.steps = *steps;
  }
  const bool done = run.state == RunState::kCompleted ? resolved.steps <= begin : resolved.steps < begin;
  if (!done) return {};
  const std::string more = std::to_string(begin > resolved.steps / 2 ? 2 * begin : resolved.steps + begin);
  return Error{ErrorKind::kRefused, "run " + run.id + " is " + state + " at step " + std::to_string(run.step) + " of " +
                                        std::to_string(resolved.steps) +
                                        "; to train on, give it more steps: tgctl resume " + run.id +
                                        " --set steps=" + more};
}

}  // namespace tg::schema

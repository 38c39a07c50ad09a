#include "daemon/node/pending_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/log.h"

namespace tg::daemon {

void PendingRun::show(const RunIdentity& run, const schema::JobSpec& job, schema::RunState state) {
  schema::RunStatus status;
  status.id = id_ = run.id;
  status.state = state;
  status.since_ms = status.started_ms = unix_time_ms();
  schema::show_job(job, status);
  status.steps = job.epochs > 0 ? 0 : job.steps;
  for (const Seat seat : context_.self.names.places())
    if (run.members.empty() || std::ranges::count(run.members, seat) > 0)
      status.members.push_back({.node = context_.self.names[seat], .state = state});
  status.lineage = run.lineage();
  if (const std::optional<RunRecord> record = context_.storage.store.recorded(run.id); record && run.resume) {
    status.started_ms = record->status.started_ms;
    status.step = run.resume->from_step.value_or(record->status.step);
    if (status.steps == 0) status.steps = record->status.steps;
  }
  context_.storage.store.show_resuming(run.id);  // or joining; only if there is a record
  context_.storage.store.update(status);
}

void PendingRun::show_wait(const std::string& why) {
  if (why != std::exchange(wait_, why)) show_reason(why);
}

bool PendingRun::show_join(const std::string& how_far) {
  if (how_far.empty() || how_far == std::exchange(join_, how_far)) return false;
  show_reason(how_far);
  return true;
}

void PendingRun::show_reason(const std::string& reason) {
  if (id_.empty()) return;
  if (std::optional<RunRecord> record = context_.storage.store.find(id_)) {
    record->status.reason = reason;
    context_.storage.store.update(record->status);
  }
}

void PendingRun::discard() { context_.storage.store.forget(std::exchange(id_, "")); }

RunRecord PendingRun::ended(const std::string& run, schema::RunState state, const std::string& reason) {
  RunRecord record;
  record.id = record.status.id = run;
  record.node = context_.self.config.node;
  record.build = context_.self.build;
  for (const Seat seat : context_.self.names.places()) record.member_names.push_back(context_.self.names[seat]);
  record.status.state = state;
  record.status.reason = reason;
  record.status.since_ms = record.status.started_ms = unix_time_ms();
  return record;
}

}  // namespace tg::daemon

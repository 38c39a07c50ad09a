#include "daemon/node/resumption.h"

#include <algorithm>
#include <utility>

#include "daemon/membership/view.h"
#include "daemon/store/view_interval.h"
#include "schema/options/job.h"
#include "schema/options/resumed_job.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

// State 0 of the first lineage.
schema::StateId initial_state(const RunRecord& record) { return {1, View::kFirst, 0, record.initial_digest}; }

// The interval of the run's first view: its members and their weights. Later views may have others.
ViewInterval first_interval(const RunRecord& record, const std::string& directory) {
  ViewInterval now = interval_of(record);
  if (record.view == View::kFirst && record.status.lineage == 1) return now;
  return first_view_in(directory + "/" + kViewsFile, 1).value_or(std::move(now));
}

// The first key that differs although no resume may change it; "" = none.
std::string changed_key(const schema::JobSpec& then, const schema::JobSpec& now) {
  for (const schema::Option<schema::JobSpec>& option : schema::job_options())
    if (!option.resumable && option.get(then) != option.get(now)) return option.name;
  return "";
}

}  // namespace

// --- proposals ---

Result<RunIdentity> Resumption::proposal_for(const schema::ResumeRequest& request, std::uint64_t key) const {
  const std::optional<RunRecord> record = context_.storage.store.recorded(request.run);
  if (!record)
    return Error{ErrorKind::kNotFound,
                 "no run '" + request.run + "' on " + context_.self.config.node + "; list the runs: tgctl list"};
  if (!record->has_begun())
    return Error{ErrorKind::kRefused,
                 "run " + record->id + " never began: it has no state to resume from; start it again"};
  const Result<schema::JobSpec> before = schema::parse_job(record->spec, "run.json");
  if (!before.ok()) return before.error();
  const Result<schema::JobSpec> job = schema::resumed_job(*before, request.settings);
  if (!job.ok()) return job.error();
  const std::optional<std::uint64_t> from_step = request.from_newest ? std::nullopt : std::optional(request.from_step);
  if (const Status may = schema::may_resume(record->status, *job, from_step); !may.ok()) return may.error();
  Result<RunIdentity> run = identity_of(*record, *job, key);
  if (!run.ok()) return run;
  run->resume->from_step = from_step;
  run->resume->any_build = request.any_build;
  return run;
}

Result<RunIdentity> Resumption::identity_of(const RunRecord& record, const schema::JobSpec& job,
                                            std::uint64_t key) const {
  const schema::NodeList& names = context_.self.names;
  const ViewInterval first = first_interval(record, context_.storage.store.directory(record.id));
  if (const Status valid = schema::validate_job(job, first.members.size()); !valid.ok()) return valid.error();
  RunIdentity run{key, record.id, schema::canonical_job(job), job.start_timeout_ms};
  if (const std::string why = refusal_reason(run, record); !why.empty()) return Error{ErrorKind::kRefused, why};
  // The members keep their shares of a batch, whatever the nodes' configurations say now.
  run.weights = context_.weights();
  for (std::size_t i = 0; i < first.weights.size() && i < first.members.size(); ++i)
    if (const auto seat = names.place_of(first.members[i])) run.weights[*seat] = first.weights[i];
  run.names = record.nodes.empty() ? first.members : record.nodes;
  run.global_batch =
      record.global_batch != 0 ? record.global_batch : schema::resolved_global_batch(job, first.members.size());
  run.resume = schema::Resume{.lineage = record.status.lineage + 1, .from_step = {}};
  return run;
}

// Why this node cannot take part in such a resume, whatever is on its disk; "" = it can.
std::string Resumption::refusal_reason(const RunIdentity& run, const std::optional<RunRecord>& record) const {
  const std::string& node = context_.self.config.node;
  if (!record || !record->has_begun())
    return node + " has no run " + run.id + ": its state directory was replaced or emptied";
  const Result<schema::JobSpec> then = schema::parse_job(record->spec, "run.json"),
                                now = schema::parse_job(run.spec, "proposal");
  if (!then.ok()) return node + ": " + then.error().message;
  if (!now.ok()) return node + ": " + now.error().message;
  if (const std::string key = changed_key(*then, *now); !key.empty())
    return node + " has another job for run " + run.id + ": " + key + " differs; the file run.json was edited";
  return "";
}

// --- as a member ---

void Resumption::find_states(const RunIdentity& run) {
  const std::optional<RunRecord> record = context_.storage.store.recorded(run.id);
  std::string why = refusal_reason(run, record);
  if (why.empty() && record->status.state == schema::RunState::kCompleted)
    if (const Result<schema::JobSpec> job = schema::parse_job(run.spec, "proposal"); job.ok())
      if (const Status may = schema::may_resume(record->status, *job, run.resume->from_step); !may.ok())
        why = context_.self.config.node + ": " + may.error().message;
  if (why.empty() && run.resume->unasked && record->left_by_order)
    why = context_.self.config.node + " was removed from run " + run.id;
  if (!why.empty()) return queue_.post(StatesFound{run.run_key, run.id, {.states = {}, .rejected = {why}}, false});
  context_.storage.saver.post([&context = context_, &queue = queue_, id = run.id, key = run.run_key] {
    const auto advance = [&context] { ++context.news.progress.count; };
    Result<RecoveryPoints> found = context.storage.store.recovery_points(id, advance);
    queue.post(found.ok() ? StatesFound{key, id, *std::move(found)}
                          : StatesFound{key, id, {.states = {}, .rejected = {found.error().message}}, false});
  });
}

schema::Offer Resumption::make_offer(StatesFound event) {
  schema::Offer offer;
  found_ = std::move(event.found.states);
  for (const RecoveryPoint& found : found_)
    if (offer.states.size() < schema::kMaxStates) offer.states.push_back(found.id);
  // The initial state needs no file: it follows from the job.
  if (const std::optional<RunRecord> record = context_.storage.store.recorded(event.run_id); event.known && record) {
    if (offer.states.size() == schema::kMaxStates) offer.states.pop_back();
    offer.states.push_back(initial_state(*record));
  }
  for (const std::string& refused : event.found.rejected) {
    offer.problem += (offer.problem.empty() ? "" : "; ") + refused;
    context_.news.log.warning("state-rejected", {{"run", event.run_id}, {"what", refused}});
  }
  offer.problem = schema::clip_text(offer.problem, schema::kMaxReasonBytes);
  return offer;
}

std::uint32_t Resumption::known_lineage(const std::string& run) const {
  const std::optional<RunRecord> record = context_.storage.store.recorded(run);
  return record && record->has_begun() ? record->status.lineage : 0;
}

Result<SavedStart> Resumption::saved_start(const RunIdentity& run) const {
  const std::optional<RunRecord> record = context_.storage.store.recorded(run.id);
  if (!record) return Error{ErrorKind::kNotFound, context_.self.config.node + " has no run " + run.id};
  SavedStart start;
  start.state = *run.resume->start;
  start.directory = context_.storage.store.directory(run.id);
  start.from_the_beginning = start.state == initial_state(*record);
  for (const RecoveryPoint& found : found_)
    if (found.id == start.state) start.counters = found.facts.counters;
  start.data_hash = record->data_hash;
  start.model_hash = record->model_hash;
  start.record = std::make_shared<const RunRecord>(*record);
  if (run.resume->any_build) return start;
  start.engine_build = record->own.engine_build;
  start.threads = record->own.threads;
  return start;
}

}  // namespace tg::daemon

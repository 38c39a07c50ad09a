#include "daemon/node/auto_resume.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/store/view_interval.h"
#include "schema/options/job.h"
#include "schema/text.h"

namespace tg::daemon {

void AutoResume::on_foreign_heartbeat(Seat peer, const std::string& run, std::uint64_t now_ms) {
  if (std::exchange(elsewhere_, run) != run) in_it_.clear();
  in_it_.insert(peer);
  elsewhere_until_ms_ = now_ms + kElsewhereMs;
}

// The newest run, if it was interrupted, its job allows an automatic resume, and this node was not removed from it.
std::optional<RunRecord> AutoResume::interrupted() const {
  const std::vector<RunRecord> records = context_.storage.store.records();
  const auto newest =
      std::ranges::max_element(records, {}, [](const RunRecord& record) { return record.status.since_ms; });
  if (newest == records.end() || newest->status.state != schema::RunState::kInterrupted) return std::nullopt;
  const Result<schema::JobSpec> job = schema::parse_job(newest->spec, "run.json");
  if (!job.ok() || !job->auto_resume || newest->left_by_order) return std::nullopt;
  return *newest;
}

std::optional<RunIdentity> AutoResume::next_proposal(const Nodes& nodes, std::uint64_t now_ms, std::uint64_t key) {
  if (!run_elsewhere(now_ms).empty()) return std::nullopt;
  const std::optional<RunRecord> record = interrupted();
  if (!record) return std::nullopt;
  const schema::NodeList& names = context_.self.names;
  const bool can_join = schema::parse_job(record->spec, "run.json")->join_limit_ms > 0;
  const std::vector<std::string> last = nodes.last_members(record->id);
  const std::vector<std::string>& awaited = can_join || record->nodes.empty() ? last : record->nodes;
  std::string missing;
  std::vector<Seat> members;
  for (const std::string& node : awaited) {
    const std::optional<Seat> seat = names.listed(node);
    if (seat) members.push_back(*seat);
    if ((seat && nodes.is_reachable(*seat)) || (!seat && std::ranges::count(last, node) == 0)) continue;
    missing += (missing.empty() ? "" : ", ") + node;
    if (!seat) missing += ", which no peer line names: put it back, or tgctl resume " + record->id;
  }
  show_next(*record, missing);
  // If the run is active without this node, the first heartbeats of a reachable peer say so.
  std::vector<Seat> reachable = names.places_where(nodes.is_reachable);
  if (reachable != std::exchange(reachable_, reachable)) reachable_since_ms_ = now_ms;
  if (!missing.empty() || members.empty() || members.front() != context_.self.config.seat() ||
      now_ms < reachable_since_ms_ + kSettleMs || now_ms < next_try_ms_)
    return std::nullopt;
  std::optional<RunIdentity> run = identity_of(*record, now_ms, key);
  if (run) run->members = std::move(members);
  return run;
}

std::optional<RunIdentity> AutoResume::identity_of(const RunRecord& record, std::uint64_t now_ms, std::uint64_t key) {
  if (std::exchange(tried_run_, record.id) != record.id) pause_ms_ = kFirstPauseMs;
  const std::uint64_t pause_ms = std::exchange(pause_ms_, std::min(2 * pause_ms_, kMaxPauseMs));
  next_try_ms_ = now_ms + pause_ms + pause_ms * (key % 512) / 1024;  // so that two proposers collide only once
  Result<RunIdentity> run = resumption_.identity_of(record, *schema::parse_job(record.spec, "run.json"), key);
  if (!run.ok()) {
    context_.news.log.warning("auto-resume", {{"run", record.id}, {"why", run.error().message}});
    return std::nullopt;
  }
  std::vector<ViewInterval> past = intervals_in(context_.storage.store.directory(record.id) + "/" + kViewsFile);
  past.push_back(interval_of(record));
  run->resume->unasked = true;
  run->not_from = repeated_start(past, kMaxTries);
  context_.news.log.info("auto-resume", {{"run", record.id}});
  return *std::move(run);
}

// away: the names of unreachable nodes.
void AutoResume::show_next(const RunRecord& run, const std::string& missing) const {
  std::string next = "resumes automatically when its members return";
  if (!missing.empty())
    next += " (missing: " + missing + ")";
  else if (!failure_.empty())
    next = "not resumed automatically: " + failure_;
  context_.storage.store.show_next(run.id, schema::clip_text(next, schema::kMaxReasonBytes));
}

}  // namespace tg::daemon

#include "daemon/node/auto_resume.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/store/view_interval.h"
#include "schema/options/job.h"
#include "schema/text.h"

namespace tg::daemon {

void AutoResume::hears_of(const std::string& run, std::uint64_t now_ms) {
  elsewhere_ = run;
  elsewhere_until_ms_ = now_ms + kElsewhereMs;
}

// The newest run, if it was interrupted, its job lets it go on, and nobody left it here by order.
std::optional<RunRecord> AutoResume::interrupted() const {
  const std::vector<RunRecord> records = context_.disk.store.records();
  const auto newest =
      std::ranges::max_element(records, {}, [](const RunRecord& record) { return record.status.since_ms; });
  if (newest == records.end() || newest->status.state != schema::RunState::kInterrupted) return std::nullopt;
  const Result<schema::JobSpec> job = schema::parse_job(newest->spec, "run.json");
  if (!job.ok() || !job->auto_resume || newest->left_by_order) return std::nullopt;
  return *newest;
}

std::optional<RunIdentity> AutoResume::due(const Nodes& nodes, std::uint64_t now_ms, std::uint64_t key) {
  if (!on_elsewhere(now_ms).empty()) return std::nullopt;
  const std::optional<RunRecord> record = interrupted();
  if (!record) return std::nullopt;
  const Per<Seat, std::string>& names = context_.self.names;
  std::vector<Seat> all, there;
  for (const Seat seat : names.places()) all.push_back(seat);
  const bool others_come_in = schema::parse_job(record->spec, "run.json")->join_limit_ms > 0;
  const std::vector<Seat> awaited = others_come_in ? nodes.last_members(record->id) : all;
  std::string away;
  for (const Seat seat : awaited)
    if (!nodes.there(seat)) away += (away.empty() ? "" : ", ") + names[seat];
  show_next(*record, away);
  // A run that goes on without this node is told by the first beats of whoever has come.
  std::ranges::copy_if(all, std::back_inserter(there), nodes.there);
  if (there != std::exchange(there_, there)) there_since_ms_ = now_ms;
  if (!away.empty() || awaited.front() != context_.self.config.seat() || now_ms < there_since_ms_ + kFirstBeatsMs ||
      now_ms < next_try_ms_)
    return std::nullopt;
  std::optional<RunIdentity> run = identity_of(*record, now_ms, key);
  if (run && awaited.size() < all.size()) run->members = awaited;
  return run;
}

std::optional<RunIdentity> AutoResume::identity_of(const RunRecord& record, std::uint64_t now_ms, std::uint64_t key) {
  if (std::exchange(tried_, record.id) != record.id) pause_ms_ = kFirstTryMs;
  const std::uint64_t pause_ms = std::exchange(pause_ms_, std::min(2 * pause_ms_, kLatestTryMs));
  next_try_ms_ = now_ms + pause_ms + pause_ms * (key % 512) / 1024;  // two that speak at once do so once
  Result<RunIdentity> run = resumption_.identity_of(record, *schema::parse_job(record.spec, "run.json"), key);
  if (!run.ok()) {
    context_.news.log.warning("auto-resume", {{"run", record.id}, {"why", run.error().message}});
    return std::nullopt;
  }
  std::vector<ViewInterval> past = intervals_in(context_.disk.store.directory(record.id) + "/" + kViewsFile);
  past.push_back(interval_of(record));
  run->resume->unasked = true;
  run->not_from = repeated_start(past, kMaxTries);
  context_.news.log.info("auto-resume", {{"run", record.id}});
  return *std::move(run);
}

// away: names of nodes that are not there.
void AutoResume::show_next(const RunRecord& run, const std::string& away) const {
  std::string next = "it goes on by itself as soon as its members are back";
  if (!away.empty())
    next += ": " + away + (away.find(',') == away.npos ? " is" : " are") + " not";
  else if (!why_nothing_.empty())
    next = "it does not go on by itself: " + why_nothing_;
  context_.disk.store.show_next(run.id, schema::clip_text(next, schema::kMaxReasonBytes));
}

}  // namespace tg::daemon

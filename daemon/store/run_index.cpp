#include "daemon/store/run_index.h"

#include <algorithm>
#include <utility>

#include "kernels/base/log.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

using schema::MemberStatus;
using schema::RunState;
using schema::RunStatus;
}  // namespace

void RunIndex::put(RunRecord record, OnDisk on_disk) {
  const std::lock_guard lock(mutex_);
  Entry& entry = runs_[record.id];
  entry = {.shown = std::move(record), .is_written = true, .on_disk = std::move(on_disk)};
}

void RunIndex::replace(const RunRecord& record, OnDisk on_disk) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(record.id);
  if (found == runs_.end()) return;
  found->second.written() = record;
  found->second.on_disk = std::move(on_disk);
}

RunIndex::Changed RunIndex::change(std::uint64_t key, const std::function<void(RunRecord&)>& change) {
  Changed changed;
  const std::lock_guard lock(mutex_);
  for (auto& [id, entry] : runs_) {
    RunRecord& record = entry.written();
    if (key == 0 || record.key != key || !schema::has_ended(record.status.state)) continue;
    changed.found = true;
    const std::string before = record_to_json(record);
    change(record);
    if (record_to_json(record) != before) changed.record = record;
  }
  return changed;
}

void RunIndex::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  runs_.erase(id);
}

void RunIndex::update(const RunStatus& status) {
  if (!schema::is_run_id(status.id)) return;
  const std::lock_guard lock(mutex_);
  Entry& entry = runs_[status.id];
  entry.shown.id = status.id;
  entry.shown.node = node_;
  RunStatus& shown = entry.shown.status;
  const bool ends = schema::has_ended(status.state) && !schema::has_ended(shown.state);
  const RunStatus before = ends ? shown : status;
  shown = status;
  shown.state = before.state;
  shown.reason = before.reason;
  shown.since_ms = before.since_ms;
  for (MemberStatus& member : shown.members) {
    if (ends && member.node == node_) member.state = before.state;
  }
}

void RunIndex::show_resuming(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Entry& entry = found->second;
  if (!entry.is_written || entry.before || !schema::has_ended(entry.shown.status.state)) return;
  entry.before = entry.shown;
  RunStatus& shown = entry.shown.status;
  shown.state = RunState::kPending;
  shown.reason.clear();
  shown.since_ms = unix_time_ms();
  for (MemberStatus& member : shown.members) member.state = shown.state;
}

void RunIndex::show_next(const std::string& id, const std::string& next) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found != runs_.end() && found->second.is_written && !found->second.before) found->second.shown.status.next = next;
}

void RunIndex::forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Entry& entry = found->second;
  if (!entry.is_written) {
    runs_.erase(found);
  } else if (entry.before) {
    entry.shown = *std::exchange(entry.before, std::nullopt);
  }
}

Result<std::string> RunIndex::resolve(const std::string& id_or_prefix) const {
  const std::lock_guard lock(mutex_);
  if (runs_.contains(id_or_prefix)) return id_or_prefix;
  std::vector<std::string> fitting;
  if (!id_or_prefix.empty()) {
    for (auto at = runs_.lower_bound(id_or_prefix); at != runs_.end(); ++at) {
      if (!at->first.starts_with(id_or_prefix)) break;
      fitting.push_back(at->first);
    }
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty())
    return Error{ErrorKind::kNotFound, "no run '" + id_or_prefix + "' on " + node_ + "; list the runs: tgctl list"};
  return Error{ErrorKind::kUsage, "run '" + id_or_prefix + "' is not unique: " + std::to_string(fitting.size()) +
                                      " match, among them " + fitting[0] + " and " + fitting[1]};
}

std::optional<RunRecord> RunIndex::find(const std::string& id_or_unique_prefix) const {
  const Result<std::string> id = resolve(id_or_unique_prefix);
  if (!id) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(*id);
  if (found == runs_.end()) return std::nullopt;  // erased meanwhile
  return found->second.shown;
}

std::vector<RunStatus> RunIndex::statuses() const {
  std::vector<RunStatus> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : runs_) {
    RunStatus status = status_of(entry.shown);
    for (MemberStatus& row : status.members)
      if (row.node == node_ && schema::has_ended(status.state)) row.states = entry.on_disk.states;
    all.push_back(std::move(status));
  }
  std::sort(all.begin(), all.end(), schema::is_newer);
  return all;
}

bool RunIndex::has(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return runs_.contains(id);
}

std::optional<RunRecord> RunIndex::written(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end() || !found->second.is_written) return std::nullopt;
  return found->second.written();
}

std::vector<RunRecord> RunIndex::all_written() const {
  std::vector<RunRecord> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : runs_)
    if (entry.is_written) all.push_back(entry.written());
  return all;
}

bool RunIndex::lacks_record(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  return found != runs_.end() && !found->second.on_disk.record;
}

}  // namespace tg::daemon

#include "daemon/store/run_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "daemon/store/vote_file.h"
#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

namespace fs = std::filesystem;
using schema::RunStatus;

constexpr std::size_t kMaxUnrecorded = 1024;  // a run's intervals that wait for room on the disk
constexpr std::array kFiles = {kRecordFile, kMetricsFile,  kViewsFile, kLogFile,
                               kModelFile,  kRawModelFile, kStateFile, "trace.json"};

// The record of a resume that was written as begun and then failed to begin.
RunRecord ended_at_once(RunRecord record, const RunRecord& end) {
  record.status.state = record.own_row().state = end.status.state;
  record.status.reason = end.status.reason;
  record.status.since_ms = end.status.since_ms;
  return record;
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::open(const std::string& state_dir, const std::string& node,
                                                 std::vector<std::string>& warnings, Retention retention) {
  Result<std::unique_ptr<RunFiles>> files = RunFiles::open(state_dir, node);
  if (!files) return files.error();
  const Result<std::vector<std::string>> ids = (*files)->list();
  if (!ids) return ids.error();
  std::unique_ptr<RunStore> store(new RunStore(*std::move(files), node, std::move(retention)));
  for (const std::string& id : *ids) store->load(id, warnings);
  store->delete_runs();
  return store;
}

void RunStore::load(const std::string& id, std::vector<std::string>& warnings) {
  Result<RunRecord> record = files_->read_record(id);
  if (!record) {
    warnings.push_back("run left alone, " + files_->directory(id) + "/" + kRecordFile + ": " + record.error().message);
    return;
  }
  if (const Status written = files_->recover(*record); !written)
    warnings.push_back("run " + record->id + " is " + to_word(record->status.state) +
                       ", but that cannot be written: " + written.error().message);
  put(*std::move(record), true);
}

void RunStore::put(RunRecord record, bool is_written) {
  RunIndex::OnDisk there = on_disk(record, is_written);
  index_.put(std::move(record), std::move(there));
}

RunIndex::OnDisk RunStore::on_disk(const RunRecord& record, bool is_written) const {
  const bool may_be_resumed = record.has_begun() && schema::has_ended(record.status.state);
  if (!may_be_resumed) return {is_written, {}};
  return {is_written, recovery_steps(files_->directory(record.id), record)};
}

void RunStore::delete_runs() {
  const std::set<std::string> only_here = unsaved_.ids();  // whose state exists only in memory
  std::vector<EndedRun> all;
  for (const RunStatus& run : index_.statuses()) {
    const bool ended = schema::is_final(run.state) &&
                       !only_here.contains(run.id);  // the state shown: a run being resumed has not ended
    if (const std::optional<RunRecord> record = index_.written(run.id); ended && record)
      all.push_back(files_->ended_run(*record));
  }
  for (Deletion& deletion : runs_to_delete(std::move(all), retention_.limits, unix_time_ms())) {
    const Status deleted = files_->remove(deletion.id);
    if (deleted.ok()) {
      index_.erase(deletion.id);
    } else {
      deletion.why += ", but " + deleted.error().message;  // it is retried
    }
    retention_.deleted(deletion);
  }
  for (Deletion& gone : runs_to_delete(files_->kept_votes(), kKeptVotes, unix_time_ms())) {
    files_->delete_vote(gone.id);
    gone.why = "only the vote was left: " + gone.why;
    retention_.deleted(gone);
  }
}

std::vector<std::string> RunStore::voters_in_doubt(const std::string& id) const {
  const std::optional<RunRecord> record = index_.written(id);
  std::error_code none;
  if (!record || schema::is_final(record->status.state) || !fs::exists(directory(id) + "/" + kVoteFile, none))
    return {};
  std::vector<std::string> nodes = record->member_names;
  std::erase_if(nodes, [&](const std::string& node) {
    const auto other = record->others.find(node);
    return node == node_ || (other != record->others.end() && other->second.save != schema::SaveState::kUnknown);
  });
  return nodes;
}

void RunStore::delete_expired() {
  const std::lock_guard writers(writing_);
  delete_runs();
}

Result<std::uint64_t> RunStore::remove(const std::string& id) {
  const std::lock_guard writers(writing_);
  const std::optional<RunRecord> record = find(id);
  if (!record || record->id != id)
    return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + node_ + "; list the runs: tgctl list"};
  if (!schema::has_ended(record->status.state))
    return Error{ErrorKind::kRefused, "run " + id + " is " + std::string(to_word(record->status.state)) + " on " +
                                          node_ + "; stop it first: tgctl stop " + id};
  const std::uint64_t bytes = files_->ended_run(*record).bytes;
  if (Status deleted = files_->remove(id, !schema::is_final(record->status.state)); !deleted) return deleted.error();
  unrecorded_.erase(id);
  index_.erase(id);
  unsaved_.drop(id);
  return bytes;
}

Status RunStore::mark_fetched(const std::string& id) {
  const std::lock_guard writers(writing_);
  std::optional<RunRecord> record = index_.written(id);
  if (!record) return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + node_ + "; list the runs: tgctl list"};
  record->fetched_ms = unix_time_ms();
  Status written = files_->write_record(*record);
  index_.replace(*record, on_disk(*record, written.ok()));
  return written;
}

Status RunStore::write(const RunRecord& record) {
  if (!schema::is_run_id(record.id)) {
    return Error{ErrorKind::kUsage, "'" + record.id + "' cannot be a run's id: " + schema::run_id_rule()};
  }
  const std::lock_guard writers(writing_);
  RunRecord own = record;
  own.node = node_;
  own.status.id = own.id;
  std::optional<RunRecord> before = index_.written(own.id);
  if (before && before->has_begun() && !own.has_begun()) {
    if (schema::has_ended(before->status.state)) {
      forget(own.id);  // a failed resume changes nothing
      return {};
    }
    if (before->from.lineage > 0) own = ended_at_once(*before, own);
  }
  const bool goes_on = before && before->has_begun() && !interval_of(*before).same_as(interval_of(own));
  const bool ends = schema::has_ended(own.status.state);
  Status recorded;
  if (goes_on) {
    recorded = record_intervals(*before);
    if (recorded.ok()) recorded = files_->record_interval(*before);  // an older tgd has not written it
    own.intervals = before->intervals;
  }
  if (ends) recorded = files_->record_interval(own);
  // The disk comes first: a client that sees a run COMPLETED may fetch its run.json at once.
  Status written = files_->write_record(own);
  if (!written && goes_on && !ends) {
    forget(own.id);  // it has not begun
    return written;
  }
  if (goes_on) unsaved_.drop(own.id);
  put(std::move(own), written.ok());
  delete_runs();
  return written.ok() ? recorded : written;
}

Status RunStore::join(const RunRecord& record, const std::string& views, const ViewInterval& ended) {
  const std::lock_guard writers(writing_);
  RunRecord own = record;
  own.node = node_;
  own.status.id = own.id;
  Status recorded = engine::write_file_atomically(files_->directory(own.id) + "/" + kViewsFile, views);
  if (recorded.ok()) recorded = files_->record_interval(own, ended);
  const Status written = recorded.ok() ? files_->write_record(own) : recorded;
  if (!written.ok()) {
    forget(own.id);  // it has not begun here
    return written;
  }
  unsaved_.drop(own.id);
  put(std::move(own), true);
  return {};
}

Result<RunRecord> RunStore::set_aside(const std::string& id, std::uint64_t key, const std::string& why) {
  const std::lock_guard writers(writing_);
  std::optional<RunRecord> own = index_.written(id);
  if (!own) return Error{ErrorKind::kNotFound, node_ + " has no run " + id};
  if (unsaved_.ids().contains(id)) return Error{ErrorKind::kIo, "its state is not on the disk yet"};
  own->key = key;
  own->id = own->status.id = schema::set_aside_id(id, hex_digest(key));
  own->left_by_order = true;
  own->aside = why;
  if (Status moved = files_->rename(id, own->id); !moved) return moved.error();
  const Status written = files_->write_record(*own);  // otherwise the next start does
  index_.erase(id);
  put(*own, written.ok());
  return *std::move(own);
}

Status RunStore::change_view(const RunRecord& next, const ViewInterval& ended) {
  const std::lock_guard writers(writing_);
  RunRecord own = next;
  own.node = node_;
  std::deque<ViewInterval>& waiting = unrecorded_[own.id];
  if (waiting.size() < kMaxUnrecorded) waiting.push_back(ended);
  return write_active(std::move(own));
}

// The run is active: what status shows is newer than the record.
Status RunStore::write_active(RunRecord own) {
  const Status recorded = record_intervals(own);
  const Status written = files_->write_record(own);
  if (const std::optional<RunRecord> shown = index_.find(own.id)) own.status = shown->status;
  put(std::move(own), written.ok());
  return written.ok() ? recorded : written;
}

Status RunStore::record_intervals(RunRecord& record) {
  const auto waiting = unrecorded_.find(record.id);
  if (waiting == unrecorded_.end()) return {};
  for (; !waiting->second.empty(); waiting->second.pop_front())
    if (Status recorded = files_->record_interval(record, waiting->second.front()); !recorded.ok()) return recorded;
  unrecorded_.erase(waiting);
  return {};
}

std::string RunStore::history(const std::string& id) {
  const std::lock_guard writers(writing_);
  const Result<FileSlice> file = files_->read(id, kViewsFile, 0, kMaxViewsBytes);  // may be absent
  std::string lines = file ? file->data : "";
  lines.resize(lines.rfind('\n') + 1);  // npos + 1 = 0
  if (const auto waiting = unrecorded_.find(id); waiting != unrecorded_.end())
    for (const ViewInterval& one : waiting->second) lines += interval_to_line(one) + "\n";
  return lines;
}

Status RunStore::persist(const RunRecord& record) {
  const std::lock_guard writers(writing_);
  RunRecord own = record;
  own.node = node_;
  Status recorded;
  if (schema::has_ended(own.status.state)) {
    files_->sweep(own.id);
    recorded = record_intervals(own);
    if (recorded.ok()) recorded = files_->record_interval(own);
  } else if (const std::optional<RunRecord> before = index_.written(own.id)) {
    own.intervals = before->intervals;
    if (unrecorded_.contains(own.id)) return write_active(std::move(own));
  }
  Status written = files_->write_record(own);
  return written.ok() ? recorded : written;
}

bool RunStore::amend(std::uint64_t key, const std::function<void(RunRecord&)>& change) {
  const std::lock_guard writers(writing_);
  RunIndex::Changed changed = index_.change(key, change);
  if (changed.record) write_changed(*changed.record);
  return changed.found;
}

// A failed write is retried at the next start.
void RunStore::write_changed(RunRecord& record) {
  const bool recorded = record_intervals(record).ok() && files_->record_interval(record).ok();
  const bool written = files_->write_record(record).ok();
  index_.replace(record, on_disk(record, recorded && written));
}

void RunStore::mark_left(std::uint64_t key, bool left) {
  index_.change(key, [left](RunRecord& record) { record.left_by_order = left; });
}

void RunStore::rewrite(std::uint64_t key) {
  const std::lock_guard writers(writing_);
  for (RunRecord& record : records())
    if (record.key == key) write_changed(record);
}

std::vector<RunRecord> RunStore::records() const {
  std::vector<RunRecord> all = index_.all_written();
  std::erase_if(all, [](const RunRecord& record) { return record.key == 0; });
  return all;
}

std::vector<std::uint64_t> RunStore::save_unsaved() {
  std::vector<std::uint64_t> keys;
  for (const std::string& id : unsaved_.ids()) {
    const std::optional<RunRecord> record = index_.written(id);
    if (!record) continue;
    const Result<FileMarks> marks = unsaved_.write(id);
    if (!marks) continue;
    amend(record->key, [&](RunRecord& changed) {
      for (const auto& [name, mark] : *marks) changed.files[name] = mark;
      changed.own_row().save = schema::SaveState::kSaved;
      changed.own_row().problem.clear();
    });
    keys.push_back(record->key);
    unsaved_.drop(id);
  }
  return keys;
}

Result<RecoveryPoints> RunStore::recovery_points(const std::string& id, const std::function<void()>& advance) const {
  const std::optional<RunRecord> record = index_.written(id);
  if (!record || !record->has_begun())
    return Error{ErrorKind::kNotFound, node_ + " has no record of run " + id + " that has begun"};
  return recovery_points_in(directory(id), *record, advance);
}

bool RunStore::exists(const std::string& id) const {
  if (!schema::is_run_id(id)) return false;
  std::error_code ignored;
  if (fs::exists(files_->directory(id), ignored)) return true;
  return index_.has(id);
}

Result<schema::SliceReply> RunStore::read_slice(const std::string& id, const std::string& file, std::uint64_t offset,
                                                std::size_t most_bytes) const {
  if (std::find(kFiles.begin(), kFiles.end(), file) == kFiles.end()) {
    return Error{ErrorKind::kNotFound, "a run has no file '" + file +
                                           "'; fetch model.safetensors, "
                                           "model-raw.safetensors, metrics.jsonl, views.jsonl, trace.json or "
                                           "run.json"};
  }
  const Result<std::string> resolved = resolve(id);
  if (!resolved) return resolved.error();
  std::optional<RunRecord> record = index_.written(*resolved);  // while a resume is shown, the record before it counts
  if (!record) record = find(*resolved);
  if (!record) return Error{ErrorKind::kNotFound, "run " + id + " is gone"};
  // The run's state is read before the file's size: the file of a finished run no longer grows.
  const bool finished = schema::has_ended(record->status.state);
  const std::size_t bytes = std::min(most_bytes, schema::kFileSliceBytes);
  Result<FileSlice> slice = unsaved_.read(*record, file, offset, bytes);
  if (file == kRecordFile && finished && index_.lacks_record(record->id)) {
    const std::string json = record_to_json(*record);
    slice = FileSlice{json.size(), offset < json.size() ? json.substr(offset, bytes) : ""};
  }
  if (!slice && slice.error().kind == ErrorKind::kNotFound) slice = files_->read(record->id, file, offset, bytes);
  const bool grows = file == kLogFile || file == kMetricsFile || file == kViewsFile;
  if (!slice && slice.error().kind == ErrorKind::kNotFound) {
    if (!grows) {
      return Error{ErrorKind::kNotFound, node_ + " has no " + file + " of run " + record->id + ", which is " +
                                             std::string(to_word(record->status.state))};
    }
    slice = FileSlice{};  // nothing was written yet
  }
  if (!slice) return slice.error();
  schema::SliceReply reply;
  reply.run_id = record->id;
  reply.node = node_;
  reply.total_bytes = slice->total_bytes;
  reply.data = std::move(slice->data);
  reply.final = finished && (offset >= reply.total_bytes || offset + reply.data.size() == reply.total_bytes);
  return reply;
}

}  // namespace tg::daemon

#include "daemon/store/run_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <set>

#include "daemon/store/found_states.h"
#include "daemon/store/held_states.h"
#include "daemon/store/run_files.h"
#include "daemon/store/run_index.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

namespace fs = std::filesystem;
using schema::RunStatus;

constexpr std::array kFiles = {kRecordFile, kMetricsFile,  kViewsFile, kLogFile,
                               kModelFile,  kRawModelFile, kStateFile, "trace.json"};

// A resume whose record says that it began, and that then could not.
RunRecord ended_at_once(RunRecord record, const RunRecord& end) {
  record.status.state = record.own_row().state = end.status.state;
  record.status.reason = end.status.reason;
  record.status.since_ms = end.status.since_ms;
  return record;
}

}  // namespace

struct RunStore::State {
  State(std::unique_ptr<RunFiles> of_runs, std::string own_node, Retention own_retention)
      : files(std::move(of_runs)),
        node(std::move(own_node)),
        retention(std::move(own_retention)),
        index(node),
        held(*files) {}

  void load(const std::string& id, std::vector<std::string>& warnings);
  void put(RunRecord record, bool on_disk);
  RunIndex::OnDisk on_disk(const RunRecord& record, bool is_written) const;
  void delete_what_is_due();

  const std::unique_ptr<RunFiles> files;
  const std::string node;
  const Retention retention;

  std::mutex writing;  // serializes what touches the disk; the parts below have locks of their own, taken after it
  RunIndex index;
  HeldStates held;
};

Result<std::unique_ptr<RunStore>> RunStore::open(const std::string& state_dir, const std::string& node,
                                                 std::vector<std::string>& warnings, Retention retention) {
  Result<std::unique_ptr<RunFiles>> files = RunFiles::open(state_dir, node);
  if (!files) return files.error();
  const Result<std::vector<std::string>> ids = (*files)->list();
  if (!ids) return ids.error();
  auto state = std::make_shared<State>(*std::move(files), node, std::move(retention));
  for (const std::string& id : *ids) state->load(id, warnings);
  state->delete_what_is_due();

  auto store = std::make_unique<RunStore>();
  store->state_ = std::move(state);
  return store;
}

void RunStore::State::load(const std::string& id, std::vector<std::string>& warnings) {
  Result<RunRecord> record = files->read_record(id);
  if (!record) {
    warnings.push_back("run left alone, " + files->directory(id) + "/" + kRecordFile + ": " + record.error().message);
    return;
  }
  if (const Status written = files->recover(*record); !written)
    warnings.push_back("run " + record->id + " is " + to_word(record->status.state) +
                       ", but that cannot be written: " + written.error().message);
  put(*std::move(record), true);
}

void RunStore::State::put(RunRecord record, bool is_written) {
  RunIndex::OnDisk there = on_disk(record, is_written);
  index.put(std::move(record), std::move(there));
}

RunIndex::OnDisk RunStore::State::on_disk(const RunRecord& record, bool is_written) const {
  const bool may_be_resumed = record.begun() && schema::has_ended(record.status.state);
  if (!may_be_resumed) return {is_written, {}};
  return {is_written, steps_in(files->directory(record.id), record)};
}

// The caller holds `writing`, or is alone.
void RunStore::State::delete_what_is_due() {
  const std::set<std::string> only_here = held.ids();  // their state is nowhere else
  std::vector<EndedRun> all;
  for (const RunStatus& run : index.statuses()) {
    const bool ended = schema::is_final(run.state) && !only_here.contains(run.id);  // as shown: not one that is resumed
    if (const std::optional<RunRecord> record = index.written(run.id); ended && record)
      all.push_back(files->ended_run(*record));
  }
  for (Deletion& deletion : runs_to_delete(std::move(all), retention.limits, unix_time_ms())) {
    const Status deleted = files->remove(deletion.id);
    if (deleted.ok()) {
      index.erase(deletion.id);
    } else {
      deletion.why += ", but " + deleted.error().message;  // it is tried again
    }
    retention.deleted(deletion);
  }
}

void RunStore::delete_what_is_due() {
  const std::lock_guard writers(state_->writing);
  state_->delete_what_is_due();
}

Result<std::uint64_t> RunStore::remove(const std::string& id) {
  const std::lock_guard writers(state_->writing);
  const std::optional<RunRecord> record = find(id);
  if (!record || record->id != id)
    return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + state_->node + "; list the runs: tgctl list"};
  if (!schema::has_ended(record->status.state))
    return Error{ErrorKind::kRefused, "run " + id + " is " + std::string(to_word(record->status.state)) + " on " +
                                          state_->node + "; stop it first: tgctl stop " + id};
  const std::uint64_t bytes = state_->files->ended_run(*record).bytes;
  if (Status deleted = state_->files->remove(id); !deleted) return deleted.error();
  state_->index.erase(id);
  state_->held.drop(id);
  return bytes;
}

Status RunStore::mark_fetched(const std::string& id) {
  const std::lock_guard writers(state_->writing);
  std::optional<RunRecord> record = state_->index.written(id);
  if (!record)
    return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + state_->node + "; list the runs: tgctl list"};
  record->fetched_ms = unix_time_ms();
  Status written = state_->files->write_record(*record);
  state_->index.replace(*record, state_->on_disk(*record, written.ok()));
  return written;
}

Status RunStore::write(const RunRecord& record) {
  if (!schema::is_run_id(record.id)) {
    return Error{ErrorKind::kUsage, "'" + record.id + "' cannot be a run's id: " + schema::run_id_rule()};
  }
  const std::lock_guard writers(state_->writing);
  RunRecord own = record;
  own.node = state_->node;
  own.status.id = own.id;
  std::optional<RunRecord> before = state_->index.written(own.id);
  if (before && before->begun() && !own.begun()) {
    if (schema::has_ended(before->status.state)) {
      forget(own.id);  // a resume that came to nothing takes nothing of what is there
      return {};
    }
    if (before->from.lineage > 0) own = ended_at_once(*before, own);
  }
  const bool goes_on = before && before->begun() && !stretch_of(*before).same_as(stretch_of(own));
  const bool ends = schema::has_ended(own.status.state);
  Status told;
  if (goes_on) {
    told = state_->files->record_stretch(*before);  // an older tgd did not
    own.stretches = before->stretches;
  }
  if (ends) told = state_->files->record_stretch(own);
  // The disk first: whoever sees a run COMPLETED may fetch its run.json at once.
  Status written = state_->files->write_record(own);
  if (!written && goes_on && !ends) {
    forget(own.id);  // it has not begun
    return written;
  }
  if (goes_on) state_->held.drop(own.id);
  state_->put(std::move(own), written.ok());
  state_->delete_what_is_due();
  return written.ok() ? told : written;
}

Status RunStore::join(const RunRecord& record, const std::string& views, const Stretch& ended) {
  const std::lock_guard writers(state_->writing);
  RunRecord own = record;
  own.node = state_->node;
  own.status.id = own.id;
  Status told = engine::write_file_atomically(state_->files->directory(own.id) + "/" + kViewsFile, views);
  if (told.ok()) told = state_->files->record_stretch(own, ended);
  const Status written = told.ok() ? state_->files->write_record(own) : told;
  if (!written.ok()) {
    forget(own.id);  // it has not begun here
    return written;
  }
  state_->held.drop(own.id);
  state_->put(std::move(own), true);
  return {};
}

Status RunStore::change_view(const RunRecord& next, const Stretch& ended) {
  const std::lock_guard writers(state_->writing);
  RunRecord own = next;
  own.node = state_->node;
  const Status told = state_->files->record_stretch(own, ended);
  const Status written = state_->files->write_record(own);
  if (const std::optional<RunRecord> shown = state_->index.find(own.id)) own.status = shown->status;
  state_->put(std::move(own), written.ok());
  return written.ok() ? told : written;
}

Status RunStore::keep(const RunRecord& record) {
  const std::lock_guard writers(state_->writing);
  RunRecord own = record;
  own.node = state_->node;
  Status told;
  if (schema::has_ended(own.status.state)) {
    state_->files->sweep(own.id);
    told = state_->files->record_stretch(own);
  } else if (const std::optional<RunRecord> before = state_->index.written(own.id)) {
    own.stretches = before->stretches;
  }
  Status written = state_->files->write_record(own);
  return written.ok() ? told : written;
}

bool RunStore::amend(std::uint64_t key, const std::function<void(RunRecord&)>& change) {
  const std::lock_guard writers(state_->writing);
  RunIndex::Changed changed = state_->index.change(key, change);
  if (!changed.record) return changed.found;
  // If it cannot be written, it is tried again at the next start.
  const bool told = state_->files->record_stretch(*changed.record).ok();
  const bool written = state_->files->write_record(*changed.record).ok();
  state_->index.replace(*changed.record, state_->on_disk(*changed.record, told && written));
  return true;
}

std::vector<RunRecord> RunStore::records() const {
  std::vector<RunRecord> all = state_->index.all_written();
  std::erase_if(all, [](const RunRecord& record) { return record.key == 0; });
  return all;
}

void RunStore::hold(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive,
                    std::uint64_t bytes) {
  state_->held.hold(id, std::move(artefacts), std::move(alive), bytes);
}

HeldStates::Held RunStore::held() const { return state_->held.held(); }

std::vector<std::uint64_t> RunStore::save_held() {
  std::vector<std::uint64_t> keys;
  for (const std::string& id : state_->held.ids()) {
    const std::optional<RunRecord> record = state_->index.written(id);
    if (!record) continue;
    const Result<FileMarks> marks = state_->held.write(id);
    if (!marks) continue;
    amend(record->key, [&](RunRecord& changed) {
      for (const auto& [name, mark] : *marks) changed.files[name] = mark;
      changed.own_row().save = schema::SaveState::kSaved;
      changed.own_row().problem.clear();
    });
    keys.push_back(record->key);
    state_->held.drop(id);
  }
  return keys;
}

Result<FoundStates> RunStore::states(const std::string& id, const std::function<void()>& advance) const {
  const std::optional<RunRecord> record = state_->index.written(id);
  if (!record || !record->begun())
    return Error{ErrorKind::kNotFound, state_->node + " has no record of run " + id + " that has begun"};
  return states_in(directory(id), *record, advance);
}

void RunStore::show_resuming(const std::string& id) { state_->index.show_resuming(id); }

void RunStore::show_next(const std::string& id, const std::string& next) { state_->index.show_next(id, next); }

void RunStore::update(const RunStatus& status) { state_->index.update(status); }

void RunStore::forget(const std::string& id) { state_->index.forget(id); }

Result<std::string> RunStore::resolve(const std::string& id_or_prefix) const {
  return state_->index.resolve(id_or_prefix);
}

std::optional<RunRecord> RunStore::find(const std::string& id_or_unique_prefix) const {
  return state_->index.find(id_or_unique_prefix);
}

std::optional<RunRecord> RunStore::recorded(const std::string& id) const { return state_->index.written(id); }

std::vector<RunStatus> RunStore::statuses() const { return state_->index.statuses(); }

std::string RunStore::directory(const std::string& id) const { return state_->files->directory(id); }

bool RunStore::exists(const std::string& id) const {
  if (!schema::is_run_id(id)) return false;
  std::error_code ignored;
  if (fs::exists(state_->files->directory(id), ignored)) return true;
  return state_->index.has(id);
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
  std::optional<RunRecord> record = state_->index.written(*resolved);  // while a resume is shown, what it left stands
  if (!record) record = find(*resolved);
  if (!record) return Error{ErrorKind::kNotFound, "run " + id + " is gone"};
  // The state is read before the file's size: of a finished run, the file does not grow any more.
  const bool finished = schema::has_ended(record->status.state);
  const std::size_t bytes = std::min(most_bytes, schema::kFileSliceBytes);
  Result<FileSlice> slice = state_->held.read(*record, file, offset, bytes);
  if (file == kRecordFile && finished && state_->index.lacks_record(record->id)) {
    const std::string json = record_to_json(*record);
    slice = FileSlice{json.size(), offset < json.size() ? json.substr(offset, bytes) : ""};
  }
  if (!slice && slice.error().kind == ErrorKind::kNotFound)
    slice = state_->files->read(record->id, file, offset, bytes);
  const bool grows = file == kLogFile || file == kMetricsFile || file == kViewsFile;
  if (!slice && slice.error().kind == ErrorKind::kNotFound) {
    if (!grows) {
      return Error{ErrorKind::kNotFound, state_->node + " has no " + file + " of run " + record->id + ", which is " +
                                             std::string(to_word(record->status.state))};
    }
    slice = FileSlice{};  // nothing was written yet
  }
  if (!slice) return slice.error();
  schema::SliceReply reply;
  reply.run_id = record->id;
  reply.node = state_->node;
  reply.total_bytes = slice->total_bytes;
  reply.data = std::move(slice->data);
  reply.final = finished && (offset >= reply.total_bytes || offset + reply.data.size() == reply.total_bytes);
  return reply;
}

}  // namespace tg::daemon

#include "daemon/store/run_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "daemon/store/found_states.h"
#include "daemon/store/held_states.h"
#include "daemon/store/run_files.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

namespace fs = std::filesystem;
using schema::RunState;
using schema::RunStatus;

constexpr std::array kFiles = {kRecordFile, kMetricsFile,  kViewsFile, kLogFile,
                               kModelFile,  kRawModelFile, kStateFile, "trace.json"};

bool newer(const RunStatus& a, const RunStatus& b) {
  return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.id < b.id;
}

// A resume whose record says that it began, and that then could not.
RunRecord ended_at_once(RunRecord record, const RunRecord& end) {
  record.status.state = record.own_row().state = end.status.state;
  record.status.reason = end.status.reason;
  record.status.since_ms = end.status.since_ms;
  return record;
}

}  // namespace

struct RunStore::State {
  struct Entry {
    RunRecord record;                        // what status shows
    bool written = false;                    // as opposed to known from update() alone
    bool on_disk = true;                     // false: the disk holds an older one
    std::optional<RunRecord> before = {};    // what was written, while a resume of it is shown
    std::vector<std::uint64_t> states = {};  // steps of the states on the disk, once it has ended
    RunRecord& recorded() { return before ? *before : record; }
    const RunRecord& recorded() const { return before ? *before : record; }
  };

  State(std::unique_ptr<RunFiles> of_runs, std::string own_node, Retention own_retention)
      : files(std::move(of_runs)), node(std::move(own_node)), retention(std::move(own_retention)), held(*files) {}

  void load(const std::string& id, std::vector<std::string>& warnings);
  std::optional<RunRecord> recorded(const std::string& id) const;
  std::vector<std::uint64_t> steps_of(const RunRecord& record) const;
  void put(RunRecord record, bool on_disk);
  Result<FileSlice> read_unwritten_record(const RunRecord& record, std::uint64_t offset, std::size_t most_bytes);
  void delete_what_is_due();

  const std::unique_ptr<RunFiles> files;
  const std::string node;
  const Retention retention;

  std::mutex writing;        // serializes what touches the disk; taken before `mutex`
  mutable std::mutex mutex;  // guards runs
  std::map<std::string, Entry> runs;
  HeldStates held;  // has a lock of its own, which is never taken under `mutex`
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

// As it was written, even while a resume of it is shown.
std::optional<RunRecord> RunStore::State::recorded(const std::string& id) const {
  const std::lock_guard lock(mutex);
  const auto found = runs.find(id);
  if (found == runs.end() || !found->second.written) return std::nullopt;
  return found->second.recorded();
}

std::vector<std::uint64_t> RunStore::State::steps_of(const RunRecord& record) const {
  if (!record.begun() || !schema::has_ended(record.status.state)) return {};
  return steps_in(files->directory(record.id), record);
}

void RunStore::State::put(RunRecord record, bool on_disk) {
  std::vector<std::uint64_t> states = steps_of(record);
  const std::lock_guard lock(mutex);
  Entry& entry = runs[record.id];
  entry = {.record = std::move(record), .written = true, .on_disk = on_disk, .states = std::move(states)};
}

// The caller holds `writing`, or is alone.
void RunStore::State::delete_what_is_due() {
  const std::set<std::string> only_here = held.ids();  // their state is nowhere else
  std::vector<RunRecord> ended;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [id, entry] : runs) {
      if (entry.written && schema::is_final(entry.record.status.state) && !only_here.contains(id))
        ended.push_back(entry.record);
    }
  }
  std::vector<EndedRun> all;
  for (const RunRecord& record : ended) all.push_back(files->ended_run(record));
  for (Deletion& deletion : runs_to_delete(std::move(all), retention.limits, unix_time_ms())) {
    const Status deleted = files->remove(deletion.id);
    if (deleted.ok()) {
      const std::lock_guard lock(mutex);
      runs.erase(deletion.id);
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
  {
    const std::lock_guard lock(state_->mutex);
    state_->runs.erase(id);
  }
  state_->held.drop(id);
  return bytes;
}

Status RunStore::mark_fetched(const std::string& id) {
  const std::lock_guard writers(state_->writing);
  std::optional<RunRecord> record = state_->recorded(id);
  if (!record)
    return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + state_->node + "; list the runs: tgctl list"};
  record->fetched_ms = unix_time_ms();
  Status written = state_->files->write_record(*record);
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->runs.find(id); found != state_->runs.end()) {
      found->second.recorded() = *record;
      found->second.on_disk = written.ok();
    }
  }
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
  std::optional<RunRecord> before = state_->recorded(own.id);
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

Status RunStore::keep(const RunRecord& record) {
  const std::lock_guard writers(state_->writing);
  RunRecord own = record;
  own.node = state_->node;
  Status told;
  if (schema::has_ended(own.status.state)) {
    state_->files->sweep(own.id);
    told = state_->files->record_stretch(own);
  } else if (const std::optional<RunRecord> before = state_->recorded(own.id)) {
    own.stretches = before->stretches;
  }
  Status written = state_->files->write_record(own);
  return written.ok() ? told : written;
}

bool RunStore::amend(std::uint64_t key, const std::function<void(RunRecord&)>& change) {
  const std::lock_guard writers(state_->writing);
  std::optional<RunRecord> changed;
  bool found = false;
  {
    const std::lock_guard lock(state_->mutex);
    for (auto& [id, entry] : state_->runs) {
      RunRecord& record = entry.recorded();
      if (key == 0 || record.key != key || !schema::has_ended(record.status.state)) continue;
      found = true;
      const std::string before = record_to_json(record);
      change(record);
      if (record_to_json(record) != before) changed = record;
    }
  }
  if (!changed) return found;
  // If it cannot be written, it is tried again at the next start.
  bool on_disk = state_->files->record_stretch(*changed).ok();
  on_disk = state_->files->write_record(*changed).ok() && on_disk;
  std::vector<std::uint64_t> states = state_->steps_of(*changed);
  const std::lock_guard lock(state_->mutex);
  if (const auto at = state_->runs.find(changed->id); at != state_->runs.end()) {
    at->second.recorded() = *changed;
    at->second.on_disk = on_disk;
    at->second.states = std::move(states);
  }
  return found;
}

std::vector<RunRecord> RunStore::records() const {
  std::vector<RunRecord> all;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [id, entry] : state_->runs)
    if (entry.written && entry.recorded().key != 0) all.push_back(entry.recorded());
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
    const std::optional<RunRecord> record = state_->recorded(id);
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
  const std::optional<RunRecord> record = state_->recorded(id);
  if (!record || !record->begun())
    return Error{ErrorKind::kNotFound, state_->node + " has no record of run " + id + " that has begun"};
  return states_in(directory(id), *record, advance);
}

void RunStore::show_resuming(const std::string& id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->runs.find(id);
  if (found == state_->runs.end()) return;
  State::Entry& entry = found->second;
  if (!entry.written || entry.before || !schema::has_ended(entry.record.status.state)) return;
  entry.before = entry.record;
  schema::RunStatus& shown = entry.record.status;
  shown.state = RunState::kPending;
  shown.reason.clear();
  shown.since_ms = unix_time_ms();
  for (schema::MemberStatus& member : shown.members) member.state = shown.state;
}

void RunStore::update(const RunStatus& status) {
  if (!schema::is_run_id(status.id)) return;
  const std::lock_guard lock(state_->mutex);
  State::Entry& entry = state_->runs[status.id];
  entry.record.id = status.id;
  entry.record.node = state_->node;
  RunStatus& shown = entry.record.status;
  const bool ends = schema::has_ended(status.state) && !schema::has_ended(shown.state);
  const RunStatus before = ends ? shown : status;
  shown = status;
  shown.state = before.state;
  shown.reason = before.reason;
  shown.since_ms = before.since_ms;
  for (schema::MemberStatus& member : shown.members) {
    if (ends && member.node == state_->node) member.state = before.state;
  }
}

void RunStore::forget(const std::string& id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->runs.find(id);
  if (found == state_->runs.end()) return;
  State::Entry& entry = found->second;
  if (!entry.written) {
    state_->runs.erase(found);
  } else if (entry.before) {
    entry.record = *std::exchange(entry.before, std::nullopt);
  }
}

Result<std::string> RunStore::resolve(const std::string& id_or_prefix) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->runs.contains(id_or_prefix)) return id_or_prefix;
  std::vector<std::string> fitting;
  if (!id_or_prefix.empty()) {
    for (auto at = state_->runs.lower_bound(id_or_prefix); at != state_->runs.end(); ++at) {
      if (!at->first.starts_with(id_or_prefix)) break;
      fitting.push_back(at->first);
    }
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    return Error{ErrorKind::kNotFound,
                 "no run '" + id_or_prefix + "' on " + state_->node + "; list the runs: tgctl list"};
  }
  return Error{ErrorKind::kUsage, "run '" + id_or_prefix + "' is not unique: " + std::to_string(fitting.size()) +
                                      " begin so, among them " + fitting[0] + " and " + fitting[1]};
}

std::optional<RunRecord> RunStore::find(const std::string& id_or_unique_prefix) const {
  const Result<std::string> id = resolve(id_or_unique_prefix);
  if (!id) return std::nullopt;
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->runs.find(*id);
  if (found == state_->runs.end()) return std::nullopt;  // dropped in between
  return found->second.record;
}

std::optional<RunRecord> RunStore::recorded(const std::string& id) const { return state_->recorded(id); }

std::vector<RunStatus> RunStore::statuses() const {
  std::vector<RunStatus> all;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [id, entry] : state_->runs) {
    RunStatus status = status_of(entry.record);
    for (schema::MemberStatus& row : status.members)
      if (row.node == state_->node && schema::has_ended(status.state)) row.states = entry.states;
    all.push_back(std::move(status));
  }
  std::sort(all.begin(), all.end(), newer);
  return all;
}

std::string RunStore::directory(const std::string& id) const { return state_->files->directory(id); }

bool RunStore::exists(const std::string& id) const {
  if (!schema::is_run_id(id)) return false;
  std::error_code ignored;
  if (fs::exists(state_->files->directory(id), ignored)) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->runs.contains(id);
}

// The record, if it could not be written to the disk; kNotFound if it was.
Result<FileSlice> RunStore::State::read_unwritten_record(const RunRecord& record, std::uint64_t offset,
                                                         std::size_t most_bytes) {
  {
    const std::lock_guard lock(mutex);
    const auto found = runs.find(record.id);
    if (found == runs.end() || found->second.on_disk) return Error{ErrorKind::kNotFound, kRecordFile};
  }
  const std::string json = record_to_json(record);
  return FileSlice{json.size(), offset < json.size() ? json.substr(offset, most_bytes) : ""};
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
  std::optional<RunRecord> record = state_->recorded(*resolved);  // while a resume is shown, what it left stands
  if (!record) record = find(*resolved);
  if (!record) return Error{ErrorKind::kNotFound, "run " + id + " is gone"};
  // The state is read before the file's size: of a finished run, the file does not grow any more.
  const bool finished = schema::has_ended(record->status.state);
  const std::size_t bytes = std::min(most_bytes, schema::kFileSliceBytes);
  Result<FileSlice> slice = state_->held.read(*record, file, offset, bytes);
  if (file == kRecordFile && finished) slice = state_->read_unwritten_record(*record, offset, bytes);
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

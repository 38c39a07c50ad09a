#include "daemon/store/run_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "daemon/store/run_files.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

namespace fs = std::filesystem;
using schema::RunState;
using schema::RunStatus;

constexpr std::array kFiles = {
    kRecordFile,         kMetricsFile, kLogFile, "model.safetensors", "model-raw.safetensors",
    "state.safetensors", "trace.json"};

bool newer(const RunStatus& a, const RunStatus& b) {
  return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.id < b.id;
}

}  // namespace

struct RunStore::State {
  struct Entry {
    RunRecord record;
    bool written = false;  // as opposed to known from update() alone
    bool on_disk = true;   // false: the disk holds an older one
  };
  struct HeldState {
    Artefacts artefacts;
    std::shared_ptr<const void> alive;
    std::uint64_t bytes = 0;
  };

  State(std::unique_ptr<RunFiles> of_runs, std::string own_node, Retention own_retention)
      : files(std::move(of_runs)), node(std::move(own_node)), retention(std::move(own_retention)) {}

  void load(const std::string& id, std::vector<std::string>& warnings);
  void fail_if_unfinished(RunRecord& record, std::vector<std::string>& warnings) const;
  Result<Slice> read_unwritten_record(const RunRecord& record, std::uint64_t offset, std::size_t most_bytes);
  Result<Slice> read_state(const RunRecord& record, const std::string& file, std::uint64_t offset,
                           std::size_t most_bytes);
  void delete_what_is_due();

  const std::unique_ptr<RunFiles> files;
  const std::string node;
  const Retention retention;

  std::mutex writing;        // serializes what touches the disk; taken before `mutex`
  mutable std::mutex mutex;  // guards runs
  std::map<std::string, Entry> runs;
  std::mutex reading;  // guards what follows; held while a state is read, so never taken under `mutex`
  std::map<std::string, HeldState> held;
  std::pair<std::string, Artefacts> opened;  // the checkpoint that was read last, by its path
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
  fail_if_unfinished(*record, warnings);
  runs[id] = {std::move(*record), true, true};
}

// Its record says that the run goes on, but nothing can go on in a process that has only just begun.
void RunStore::State::fail_if_unfinished(RunRecord& record, std::vector<std::string>& warnings) const {
  schema::MemberStatus& own = record.own_row();
  if (schema::is_final(record.status.state)) {
    if (own.save == schema::SaveState::kInMemory) own.save = schema::SaveState::kNotSaved;  // lost with the process
    return;
  }
  record.status.reason = node + " ended without a word (crash, kill or power loss) while the run was " +
                         std::string(to_word(record.status.state));
  record.status.state = own.state = RunState::kFailed;
  record.status.since_ms = unix_time_ms();
  if (!files->recover_state(record)) {
    // Its committed state was lost with it.
    record.status.digest = record.status.digest_step = own.digest = own.digest_step = 0;
    own.save = schema::SaveState::kNothing;
  }
  if (const Status written = files->write_record(record); !written) {
    warnings.push_back("run " + record.id + " is FAILED, but its record cannot be written: " + written.error().message);
  }
}

// The caller holds `writing`, or is alone.
void RunStore::State::delete_what_is_due() {
  std::set<std::string> only_here;  // their state is nowhere else
  {
    const std::lock_guard readers(reading);
    for (const auto& [id, state] : held) only_here.insert(id);
  }
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
  if (!schema::is_final(record->status.state))
    return Error{ErrorKind::kRefused, "run " + id + " is " + std::string(to_word(record->status.state)) + " on " +
                                          state_->node + "; stop it first: tgctl stop " + id};
  const std::uint64_t bytes = state_->files->ended_run(*record).bytes;
  if (Status deleted = state_->files->remove(id); !deleted) return deleted.error();
  {
    const std::lock_guard lock(state_->mutex);
    state_->runs.erase(id);
  }
  const std::lock_guard readers(state_->reading);
  state_->held.erase(id);
  return bytes;
}

Status RunStore::mark_fetched(const std::string& id) {
  const std::lock_guard writers(state_->writing);
  std::optional<RunRecord> record = find(id);
  if (!record || record->id != id)
    return Error{ErrorKind::kNotFound, "no run '" + id + "' on " + state_->node + "; list the runs: tgctl list"};
  record->fetched_ms = unix_time_ms();
  Status written = state_->files->write_record(*record);
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->runs.find(id); found != state_->runs.end()) {
      found->second.record = *record;
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
  // The disk first: whoever sees a run COMPLETED may fetch its run.json at once.
  Status written = state_->files->write_record(own);
  {
    const std::lock_guard lock(state_->mutex);
    state_->runs[record.id] = {std::move(own), true, written.ok()};
  }
  state_->delete_what_is_due();
  return written;
}

Status RunStore::keep(const RunRecord& record) {
  const std::lock_guard writers(state_->writing);
  RunRecord own = record;
  own.node = state_->node;
  if (schema::is_final(own.status.state)) state_->files->sweep(own.id);
  return state_->files->write_record(own);
}

bool RunStore::amend(std::uint64_t key, const std::function<void(RunRecord&)>& change) {
  const std::lock_guard writers(state_->writing);
  std::optional<RunRecord> changed;
  bool found = false;
  {
    const std::lock_guard lock(state_->mutex);
    for (auto& [id, entry] : state_->runs) {
      if (key == 0 || entry.record.key != key || !schema::is_final(entry.record.status.state)) continue;
      found = true;
      const std::string before = record_to_json(entry.record);
      change(entry.record);
      if (record_to_json(entry.record) != before) changed = entry.record;
    }
  }
  if (!changed) return found;
  // If it cannot be written, it is tried again at the next start.
  const bool on_disk = state_->files->write_record(*changed).ok();
  const std::lock_guard lock(state_->mutex);
  if (const auto at = state_->runs.find(changed->id); at != state_->runs.end()) at->second.on_disk = on_disk;
  return found;
}

std::vector<RunRecord> RunStore::records() const {
  std::vector<RunRecord> all;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [id, entry] : state_->runs)
    if (entry.written && entry.record.key != 0) all.push_back(entry.record);
  return all;
}

void RunStore::hold(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive,
                    std::uint64_t bytes) {
  const std::lock_guard readers(state_->reading);
  state_->held.insert_or_assign(id, State::HeldState{std::move(artefacts), std::move(alive), bytes});
}

RunStore::Held RunStore::held() const {
  Held all;
  const std::lock_guard readers(state_->reading);
  for (const auto& [id, state] : state_->held) {
    all.bytes += state.bytes;
    all.runs += (all.runs.empty() ? "" : ", ") + id;
  }
  return all;
}

std::vector<std::uint64_t> RunStore::save_held() {
  std::map<std::string, State::HeldState> tries;
  {
    const std::lock_guard readers(state_->reading);
    tries = state_->held;
  }
  std::vector<std::uint64_t> keys;
  for (const auto& [id, state] : tries) {
    const std::optional<RunRecord> record = find(id);
    if (!record) continue;
    Result<FileMarks> marks = Error{ErrorKind::kIo, ""};
    {
      const std::lock_guard readers(state_->reading);  // one thread at a time reads a state
      marks = write_artefacts(directory(id), state.artefacts);
    }
    if (!marks) continue;
    amend(record->key, [&](RunRecord& changed) {
      for (const auto& [name, mark] : *marks) changed.files[name] = mark;
      changed.own_row().save = schema::SaveState::kSaved;
      changed.own_row().problem.clear();
    });
    keys.push_back(record->key);
    const std::lock_guard readers(state_->reading);
    state_->held.erase(id);
  }
  return keys;
}

void RunStore::update(const RunStatus& status) {
  if (!schema::is_run_id(status.id)) return;
  const std::lock_guard lock(state_->mutex);
  State::Entry& entry = state_->runs[status.id];
  entry.record.id = status.id;
  entry.record.node = state_->node;
  RunStatus& shown = entry.record.status;
  const bool ends = schema::is_final(status.state) && !schema::is_final(shown.state);
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
  if (found != state_->runs.end() && !found->second.written) state_->runs.erase(found);
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

std::vector<RunStatus> RunStore::statuses() const {
  std::vector<RunStatus> all;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [id, entry] : state_->runs) {
    RunStatus status = entry.record.status;
    for (schema::MemberStatus& row : status.members) {
      const auto end = entry.record.others.find(row.node);
      if (end == entry.record.others.end()) continue;
      row.save = end->second.save;
      row.problem = end->second.problem;
    }
    for (const std::string& name : entry.record.member_names) {
      const bool has_row = std::any_of(status.members.begin(), status.members.end(),
                                       [&](const schema::MemberStatus& member) { return member.node == name; });
      if (has_row) continue;
      schema::MemberStatus row;
      row.node = name;
      row.state = status.state;
      if (const auto end = entry.record.others.find(name); end != entry.record.others.end()) {
        row.save = end->second.save;
        row.problem = end->second.problem;
      }
      status.members.push_back(std::move(row));
    }
    std::sort(status.members.begin(), status.members.end(),
              [](const schema::MemberStatus& a, const schema::MemberStatus& b) { return a.node < b.node; });
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

// One of the files of a state that lies elsewhere: in memory, or in a checkpoint. kNotFound: there is none.
Result<Slice> RunStore::State::read_state(const RunRecord& record, const std::string& file, std::uint64_t offset,
                                          std::size_t most_bytes) {
  const std::lock_guard readers(reading);
  const Artefacts* artefacts = nullptr;
  if (const auto found = held.find(record.id); found != held.end()) {
    artefacts = &found->second.artefacts;
  } else if (!record.checkpoint.empty()) {
    const std::string path = files->directory(record.id) + "/" + record.checkpoint;
    if (opened.first != path) {
      Result<StateFile> state = open_state_file(path, false);
      if (!state) return state.error();
      opened = {path, std::move(state->artefacts)};
    }
    artefacts = &opened.second;
  }
  const auto image = artefacts == nullptr ? Artefacts::const_iterator() : artefacts->find(file);
  if (artefacts == nullptr || image == artefacts->end()) return Error{ErrorKind::kNotFound, file};
  Slice slice;
  slice.total_bytes = image->second.bytes();
  if (offset >= slice.total_bytes) return slice;
  slice.data.resize(std::min<std::uint64_t>(most_bytes, slice.total_bytes - offset));
  if (Status status = image->second.read(offset, std::as_writable_bytes(std::span(slice.data))); !status)
    return status.error();
  return slice;
}

// The record, if it could not be written to the disk; kNotFound if it was.
Result<Slice> RunStore::State::read_unwritten_record(const RunRecord& record, std::uint64_t offset,
                                                     std::size_t most_bytes) {
  {
    const std::lock_guard lock(mutex);
    const auto found = runs.find(record.id);
    if (found == runs.end() || found->second.on_disk) return Error{ErrorKind::kNotFound, kRecordFile};
  }
  const std::string json = record_to_json(record);
  return Slice{json.size(), offset < json.size() ? json.substr(offset, most_bytes) : ""};
}

Result<schema::SliceReply> RunStore::read_slice(const std::string& id, const std::string& file, std::uint64_t offset,
                                                std::size_t most_bytes) const {
  if (std::find(kFiles.begin(), kFiles.end(), file) == kFiles.end()) {
    return Error{ErrorKind::kNotFound, "a run has no file '" + file +
                                           "'; fetch model.safetensors, "
                                           "model-raw.safetensors, metrics.jsonl, trace.json or run.json"};
  }
  const std::optional<RunRecord> record = find(id);
  if (!record) {
    const Result<std::string> resolved = resolve(id);
    return resolved ? Error{ErrorKind::kNotFound, "run " + id + " is gone"} : resolved.error();
  }
  // The state is read before the file's size: of a finished run, the file does not grow any more.
  const bool finished = schema::is_final(record->status.state);
  const std::size_t bytes = std::min(most_bytes, schema::kFileSliceBytes);
  Result<Slice> slice = state_->read_state(*record, file, offset, bytes);
  if (file == kRecordFile && finished) slice = state_->read_unwritten_record(*record, offset, bytes);
  if (!slice && slice.error().kind == ErrorKind::kNotFound)
    slice = state_->files->read(record->id, file, offset, bytes);
  const bool grows = file == kLogFile || file == kMetricsFile;
  if (!slice && slice.error().kind == ErrorKind::kNotFound) {
    if (!grows) {
      return Error{ErrorKind::kNotFound, state_->node + " has no " + file + " of run " + record->id + ", which is " +
                                             std::string(to_word(record->status.state))};
    }
    slice = Slice{};  // nothing was written yet
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

#include "daemon/store/run_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "daemon/store/checkpoints.h"
#include "engine/storage/safetensors.h"
#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

namespace {

namespace fs = std::filesystem;
using schema::RunState;
using schema::RunStatus;

constexpr const char* kRecordFile = "run.json";
constexpr const char* kLogFile = "log.txt";
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kReserveFile = "reserve";  // room for the last record, given back when it does not fit otherwise
constexpr std::size_t kReserveBytes = 64 * 1024;
constexpr const char* kDeletedPrefix = ".deleted-";  // no run's id begins so
constexpr std::array kFiles = {
    kRecordFile,         kMetricsFile, kLogFile, "model.safetensors", "model-raw.safetensors",
    "state.safetensors", "trace.json"};

std::string errno_text() { return std::strerror(errno); }

// A file that is open; closes itself.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

struct Slice {
  std::uint64_t total_bytes = 0;
  std::string data;
};

// kNotFound where there is no such file. O_NOFOLLOW: a link in a run's directory leads nowhere. O_NONBLOCK: nor does a
// pipe hold us up.
Result<Slice> read_file(const std::string& path, std::uint64_t offset, std::size_t most_bytes) {
  const OpenFile file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat about {};
  if (file.fd() < 0) {
    return Error{errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo, "cannot read " + path + ": " + errno_text()};
  }
  if (::fstat(file.fd(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error{ErrorKind::kIo, "cannot read " + path + ": not a plain file"};
  }
  Slice slice;
  slice.total_bytes = static_cast<std::uint64_t>(about.st_size);
  if (offset >= slice.total_bytes) return slice;
  slice.data.resize(std::min<std::uint64_t>(most_bytes, slice.total_bytes - offset));
  std::size_t done = 0;
  while (done < slice.data.size()) {
    const ssize_t got =
        ::pread(file.fd(), slice.data.data() + done, slice.data.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{ErrorKind::kIo, "cannot read " + path + ": " + errno_text()};
    if (got == 0) break;  // it shrank meanwhile
    done += static_cast<std::size_t>(got);
  }
  slice.data.resize(done);
  return slice;
}

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

  State(std::string state_dir, std::string own_node, Retention own_retention)
      : root(state_dir + "/runs"),
        node(std::move(own_node)),
        retention(std::move(own_retention)),
        lock_file(state_dir + "/lock", O_RDWR | O_CREAT) {}

  std::string directory(const std::string& id) const { return root + "/" + id; }
  void load(const std::string& id, std::vector<std::string>& warnings);
  void fail_if_unfinished(RunRecord& record, std::vector<std::string>& warnings) const;
  Status write_record(const RunRecord& record) const;
  bool recover_checkpoint(RunRecord& record) const;
  Result<Slice> read_unwritten_record(const RunRecord& record, std::uint64_t offset, std::size_t most_bytes);
  Result<Slice> read_state(const RunRecord& record, const std::string& file, std::uint64_t offset,
                           std::size_t most_bytes);
  Status delete_directory(const std::string& id) const;
  EndedRun ended_run(const RunRecord& record) const;
  void delete_what_is_due();

  const std::string root;
  const std::string node;
  const Retention retention;
  const OpenFile lock_file;  // held as long as the store lives

  std::mutex writing;        // serializes what touches the disk; taken before `mutex`
  mutable std::mutex mutex;  // guards runs
  std::map<std::string, Entry> runs;
  std::mutex reading;  // guards what follows; held while a state is read, so never taken under `mutex`
  std::map<std::string, HeldState> held;
  std::pair<std::string, Artefacts> opened;  // the checkpoint that was read last, by its path
};

Result<std::unique_ptr<RunStore>> RunStore::open(const std::string& state_dir, const std::string& node,
                                                 std::vector<std::string>& warnings, Retention retention) {
  std::error_code problem;
  fs::create_directories(state_dir + "/runs", problem);
  if (problem) {
    return Error{ErrorKind::kIo, "cannot create state-dir " + state_dir + ": " + problem.message() +
                                     "; give a directory that " + node + " may write with state-dir"};
  }
  auto state = std::make_shared<State>(state_dir, node, std::move(retention));
  if (state->lock_file.fd() < 0) {
    return Error{ErrorKind::kIo, "cannot write in state-dir " + state_dir + ": " + errno_text()};
  }
  if (::flock(state->lock_file.fd(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorKind::kRefused,
                 "state-dir " + state_dir + " is in use by another tgd; give every node a state-dir of its own"};
  }
  fs::directory_iterator entries(state->root, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(kDeletedPrefix)) {  // its deletion was cut off
      std::error_code ignored;
      fs::remove_all(entries->path(), ignored);
      continue;
    }
    state->load(name, warnings);
  }
  if (problem) return Error{ErrorKind::kIo, "cannot list " + state->root + ": " + problem.message()};
  state->delete_what_is_due();

  auto store = std::make_unique<RunStore>();
  store->state_ = std::move(state);
  return store;
}

void RunStore::State::load(const std::string& id, std::vector<std::string>& warnings) {
  const std::string path = directory(id) + "/" + kRecordFile;
  const auto warn = [&](const std::string& what) { warnings.push_back("run left alone, " + path + ": " + what); };
  if (!schema::is_run_id(id)) return warn("the directory's name is no run id");
  const Result<Slice> content = read_file(path, 0, schema::kMostRecordBytes);
  if (!content) return warn(content.error().message);
  if (content->total_bytes > schema::kMostRecordBytes) return warn("larger than any record");
  Result<RunRecord> record = record_from_json(content->data);
  if (!record) return warn(record.error().message);
  if (record->id != id) return warn("holds the record of run " + record->id);
  if (record->node != node) return warn("holds the record of node '" + record->node + "', this is " + node);
  fail_if_unfinished(*record, warnings);
  runs[id] = {std::move(*record), true, true};
}

// Its record says that the run goes on, but nothing can go on in a process that has only just begun.
void RunStore::State::fail_if_unfinished(RunRecord& record, std::vector<std::string>& warnings) const {
  schema::MemberStatus& own = record.own_row();
  if (schema::is_final(record.status.state)) {
    if (own.save == schema::SaveState::kInMemory) own.save = schema::SaveState::kNotSaved;  // it went with the process
    return;
  }
  record.status.reason = node + " ended without a word (crash, kill or power loss) while the run was " +
                         std::string(to_word(record.status.state));
  record.status.state = own.state = RunState::kFailed;
  record.status.since_ms = unix_time_ms();
  if (!recover_checkpoint(record)) {
    // What it had committed went with it.
    record.status.digest = record.status.digest_step = own.digest = own.digest_step = 0;
    own.save = schema::SaveState::kNothing;
  }
  if (const Status written = write_record(record); !written) {
    warnings.push_back("run " + record.id + " is FAILED, but its record cannot be written: " + written.error().message);
  }
}

// The furthest state file that is whole stands for the state: the last one, if only its record is missing, or a
// checkpoint.
bool RunStore::State::recover_checkpoint(RunRecord& record) const {
  std::vector<std::string> names = checkpoints_in(directory(record.id));
  names.insert(names.begin(), kStateFile);
  for (const std::string& name : names) {
    const Result<StateFile> state = open_state_file(directory(record.id) + "/" + name, true);
    if (!state) continue;
    const auto text = [&](const char* key) {
      const auto found = state->metadata.find(key);
      return found == state->metadata.end() ? std::string() : found->second;
    };
    const std::string step_text = text("step");
    std::uint64_t step = 0;
    const auto [stop, code] = std::from_chars(step_text.data(), step_text.data() + step_text.size(), step);
    const std::optional<std::uint64_t> digest = parse_hex_digest(text("digest"));
    if (!digest || code != std::errc() || text("run") != record.id) continue;
    schema::MemberStatus& own = record.own_row();
    record.checkpoint = name;
    record.status.digest = own.digest = *digest;
    record.status.step = record.status.digest_step = own.step = own.digest_step = step;
    own.save = schema::SaveState::kSaved;
    return true;
  }
  return false;
}

Status RunStore::State::write_record(const RunRecord& record) const {
  std::error_code problem;
  fs::create_directories(directory(record.id), problem);
  if (problem) {
    return Error{ErrorKind::kIo, "cannot create " + directory(record.id) + ": " + problem.message()};
  }
  const std::string path = directory(record.id) + "/" + kRecordFile,
                    reserve = directory(record.id) + "/" + kReserveFile;
  const std::string json = record_to_json(record);
  Status written = engine::write_file_atomically(path, json);
  if (!written && fs::remove(reserve, problem)) written = engine::write_file_atomically(path, json);
  if (schema::is_final(record.status.state)) {
    fs::remove(reserve, problem);
  } else if (written && !fs::exists(reserve, problem)) {
    const OpenFile file(reserve, O_WRONLY | O_CREAT);  // none is no harm
    [[maybe_unused]] const int ignored = file.fd() < 0 ? 0 : ::posix_fallocate(file.fd(), 0, kReserveBytes);
  }
  return written;
}

// Out of sight in one instant: a crash leaves no half of it.
Status RunStore::State::delete_directory(const std::string& id) const {
  std::error_code problem;
  const std::string aside = root + "/" + kDeletedPrefix + id;
  fs::remove_all(aside, problem);
  fs::rename(directory(id), aside, problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    return Error{ErrorKind::kIo, "cannot delete " + directory(id) + ": " + problem.message()};
  fs::remove_all(aside, problem);  // what cannot go now goes at the next start
  return {};
}

EndedRun RunStore::State::ended_run(const RunRecord& record) const {
  EndedRun run;
  run.id = record.id;
  run.ended_ms = record.status.since_ms;
  run.begun = record.begun();
  run.failed = record.status.state == RunState::kFailed;
  run.fetched = record.fetched_ms != 0;
  std::error_code problem;
  fs::directory_iterator entries(directory(record.id), problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::error_code unknown;
    const std::uint64_t bytes = entries->file_size(unknown);
    if (unknown) continue;
    run.bytes += bytes;
    if (entries->path().extension() == ".safetensors") run.has_model = true;
  }
  return run;
}

// The caller holds `writing`, or is alone.
void RunStore::State::delete_what_is_due() {
  std::vector<RunRecord> ended;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [id, entry] : runs) {
      if (entry.written && schema::is_final(entry.record.status.state)) ended.push_back(entry.record);
    }
  }
  std::vector<EndedRun> all;
  for (const RunRecord& record : ended) all.push_back(ended_run(record));
  for (Deletion& deletion : runs_to_delete(std::move(all), retention.limits, unix_time_ms())) {
    const Status deleted = delete_directory(deletion.id);
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
  const std::uint64_t bytes = state_->ended_run(*record).bytes;
  if (Status deleted = state_->delete_directory(id); !deleted) return deleted.error();
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
  if (record->own_row().save == schema::SaveState::kInMemory) record->own_row().save = schema::SaveState::kNotSaved;
  Status written = state_->write_record(*record);
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->runs.find(id); found != state_->runs.end()) {
      found->second.record = *record;
      found->second.on_disk = written.ok();
    }
  }
  const std::lock_guard readers(state_->reading);
  state_->held.erase(id);
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
  Status written = state_->write_record(own);
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
  return state_->write_record(own);
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
  // What cannot be written is asked for again at the next start.
  const bool on_disk = state_->write_record(*changed).ok();
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

std::string RunStore::directory(const std::string& id) const { return state_->directory(id); }

bool RunStore::exists(const std::string& id) const {
  if (!schema::is_run_id(id)) return false;
  std::error_code ignored;
  if (fs::exists(state_->directory(id), ignored)) return true;
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
    const std::string path = directory(record.id) + "/" + record.checkpoint;
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

// The record where the disk has not taken it. kNotFound: it has.
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
    slice = read_file(directory(record->id) + "/" + file, offset, bytes);
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

#include "daemon/store/run_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "daemon/store/directory_id.h"
#include "daemon/store/recovery_points.h"
#include "daemon/store/view_interval.h"
#include "daemon/store/vote_file.h"
#include "engine/storage/atomic_file.h"
#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "kernels/base/regular_file.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReserveFile = "reserve";  // space for the last record, released if it is needed
constexpr std::size_t kReserveBytes = 64 * 1024;
constexpr const char* kDeletedPrefix = ".deleted-";  // no run's id begins like this

}  // namespace

OpenFile::OpenFile(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

RunFiles::RunFiles(const std::string& state_dir, std::string node)
    : state_dir_(state_dir),
      root_(state_dir + "/runs"),
      votes_(state_dir + "/votes"),
      node_(std::move(node)),
      lock_(state_dir + "/lock", O_RDWR | O_CREAT) {}

Result<std::unique_ptr<RunFiles>> RunFiles::open(const std::string& state_dir, const std::string& node) {
  std::error_code problem;
  fs::create_directories(state_dir + "/runs", problem);
  if (!problem) fs::create_directory(state_dir + "/votes", problem);
  if (problem) {
    return Error{ErrorKind::kIo, "cannot create state-dir " + state_dir + ": " + problem.message() +
                                     "; set state-dir to a directory that " + node + " may write to"};
  }
  std::unique_ptr<RunFiles> files(new RunFiles(state_dir, node));
  if (files->lock_.fd() < 0)
    return Error{ErrorKind::kIo, "cannot write in state-dir " + state_dir + ": " + std::strerror(errno)};
  if (::flock(files->lock_.fd(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorKind::kRefused,
                 "state-dir " + state_dir + " is in use by another tgd; give every node a state-dir of its own"};
  }
  engine::delete_partial_files(state_dir);
  return files;
}

Status RunFiles::check_directory(std::uint64_t id) const {
  struct stat held = {}, there = {};
  const bool is_held = ::fstat(lock_.fd(), &held) == 0 && ::stat((state_dir_ + "/lock").c_str(), &there) == 0 &&
                       held.st_dev == there.st_dev && held.st_ino == there.st_ino;
  const Result<std::uint64_t> found = is_held ? read_directory_id(state_dir_) : Result<std::uint64_t>(0);
  if (found && *found == id) return {};
  return Error{ErrorKind::kIo, "state-dir " + state_dir_ +
                                   " is not the directory that tgd began with: it was unmounted, " +
                                   "moved or replaced; bring it back as it was"};
}

Result<std::vector<std::string>> RunFiles::list() const {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(root_, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(kDeletedPrefix)) {
      fs::remove_all(entries->path(), ignored);
      continue;
    }
    if (schema::is_run_id(name)) sweep(name);
    names.push_back(name);
  }
  if (problem) return Error{ErrorKind::kIo, "cannot list " + root_ + ": " + problem.message()};
  return names;
}

void RunFiles::sweep(const std::string& id) const { engine::delete_partial_files(directory(id)); }

Result<RunRecord> RunFiles::read_record(const std::string& id) const {
  const auto refused = [](const std::string& what) { return Error{ErrorKind::kIo, what}; };
  if (!schema::is_run_id(id)) return refused("the directory's name is not a run id");
  const Result<FileSlice> content = read(id, kRecordFile, 0, schema::kMaxRecordBytes);
  if (!content) return content.error();
  if (content->total_bytes > schema::kMaxRecordBytes) return refused("larger than any record");
  Result<RunRecord> record = record_from_json(content->data);
  if (!record) return record.error();
  if (schema::is_set_aside(id, record->id)) {  // it died before it had written the new one
    record->id = record->status.id = id;
    record->key = parse_hex_digest(id.substr(id.rfind('-') + 1)).value_or(record->key);
    record->left_by_order = true;
    record->aside = "set aside when another lineage of it was heard";
  }
  if (record->id != id) return refused("holds the record of run " + record->id);
  if (record->node != node_) return refused("holds the record of node '" + record->node + "', this is " + node_);
  return record;
}

// Reads a slice; symbolic links in a run's directory are refused.
Result<FileSlice> RunFiles::read(const std::string& id, const std::string& name, std::uint64_t offset,
                                 std::size_t most_bytes) const {
  const std::string path = directory(id) + "/" + name;
  const auto unreadable = [&](const Error& cause) {
    return Error{cause.kind, "cannot read " + path + ": " + cause.message};
  };
  const Result<RegularFile> file = RegularFile::open(path, RegularFile::Links::kRefuse);
  if (!file) return unreadable(file.error());
  FileSlice slice;
  slice.total_bytes = file->bytes();
  if (offset >= slice.total_bytes) return slice;
  slice.data.resize(std::min<std::uint64_t>(most_bytes, slice.total_bytes - offset));
  const Result<std::size_t> got = file->read(offset, std::as_writable_bytes(std::span(slice.data)));
  if (!got) return unreadable(got.error());
  slice.data.resize(*got);  // less if the file shrank meanwhile
  return slice;
}

Status RunFiles::recover(RunRecord& record) const {
  schema::MemberStatus& own = record.own_row();
  if (schema::has_ended(record.status.state)) {
    if (own.save == schema::SaveState::kInMemory) own.save = schema::SaveState::kNotSaved;  // lost with the process
    return {};
  }
  record.status.reason = node_ + " ended unexpectedly (crash, kill or power loss) while the run was " +
                         std::string(to_word(record.status.state));
  // A start that never began cannot be resumed.
  record.status.state = own.state = record.has_begun() ? schema::RunState::kInterrupted : schema::RunState::kFailed;
  record.status.since_ms = unix_time_ms();
  if (!recover_state(record)) {
    // The committed state was lost with the process.
    record.status.digest = record.status.digest_step = own.digest = own.digest_step = 0;
    own.save = schema::SaveState::kNothing;
  }
  const Status recorded = record_interval(record);
  const Status written = write_record(record);
  return recorded.ok() ? written : recorded;
}

bool RunFiles::recover_state(RunRecord& record) const {
  const std::optional<RecoveryPoint> newest = newest_recovery_point(directory(record.id), record);
  if (!newest) return false;
  record.checkpoint = newest->file;
  schema::MemberStatus& own = record.own_row();
  record.status.digest = own.digest = newest->id.digest;
  record.status.step = record.status.digest_step = own.step = own.digest_step = newest->id.step;
  own.save = schema::SaveState::kSaved;
  if (newest->facts.key != 0) record.status.counters() = newest->facts.counters;
  return true;
}

Status RunFiles::record_interval(RunRecord& record) const { return record_interval(record, interval_of(record)); }

Status RunFiles::record_interval(RunRecord& record, const ViewInterval& interval) const {
  if (!record.has_begun()) return {};
  const std::string path = directory(record.id) + "/" + kViewsFile;
  std::error_code ignored;
  fs::create_directory(directory(record.id), ignored);  // the next call reports a failure
  Result<std::uint64_t> lines = add_interval(path, interval);
  if (!lines && schema::has_ended(record.status.state) &&
      fs::remove(directory(record.id) + "/" + kReserveFile, ignored))
    lines = add_interval(path, interval);
  record.files.erase(kViewsFile);
  if (!lines) return lines.error();
  record.intervals = *lines;
  const Result<engine::FileMark> mark = engine::mark_of_file(path);
  if (!mark) return mark.error();
  record.files[kViewsFile] = *mark;
  return {};
}

Status RunFiles::write_record(const RunRecord& record) const {
  std::error_code problem;
  fs::create_directory(directory(record.id), problem);
  if (problem) {
    return Error{ErrorKind::kIo, "cannot create " + directory(record.id) + ": " + problem.message()};
  }
  const std::string path = directory(record.id) + "/" + kRecordFile,
                    reserve = directory(record.id) + "/" + kReserveFile;
  const std::string json = record_to_json(record);
  Status written = engine::write_file_atomically(path, json);
  if (!written && fs::remove(reserve, problem)) written = engine::write_file_atomically(path, json);
  if (schema::has_ended(record.status.state)) {
    fs::remove(reserve, problem);
  } else if (written && !fs::exists(reserve, problem)) {
    const OpenFile file(reserve, O_WRONLY | O_CREAT);  // failure is harmless
    [[maybe_unused]] const int ignored = file.fd() < 0 ? 0 : ::posix_fallocate(file.fd(), 0, kReserveBytes);
  }
  return written;
}

EndedRun RunFiles::ended_run(const RunRecord& record) const {
  EndedRun run;
  run.id = record.id;
  run.ended_ms = record.status.since_ms;
  run.has_begun = record.has_begun();
  run.failed = record.status.state == schema::RunState::kFailed;
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

Status RunFiles::rename(const std::string& id, const std::string& to) const {
  std::error_code problem;
  fs::rename(directory(id), directory(to), problem);
  if (!problem) return {};
  return Error{ErrorKind::kIo, "cannot rename " + directory(id) + " to " + to + ": " + problem.message()};
}

std::string RunFiles::vote_directory(const std::string& id) const {
  std::error_code unknown;
  return fs::exists(directory(id), unknown) ? directory(id) : votes_ + "/" + id;
}

std::vector<EndedRun> RunFiles::kept_votes() const {
  std::vector<EndedRun> found;
  std::error_code problem, none;
  for (fs::directory_iterator at(votes_, problem), end; !problem && at != end; at.increment(problem)) {
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(at->path() / kVoteFile, none);
    const auto age_ms = std::chrono::duration_cast<std::chrono::milliseconds>(age).count();
    found.push_back({.id = at->path().filename().string(), .ended_ms = unix_time_ms() - age_ms, .has_begun = true});
  }
  return found;
}

void RunFiles::delete_vote(const std::string& id) const {
  std::error_code ignored;
  fs::remove_all(votes_ + "/" + id, ignored);
}

Status RunFiles::remove(const std::string& id, bool keeps_vote) const {
  std::error_code problem;
  if (!keeps_vote) delete_vote(id);
  if (const std::string vote = directory(id) + "/" + kVoteFile; keeps_vote && fs::exists(vote, problem)) {
    fs::create_directory(votes_ + "/" + id, problem);
    if (!problem) fs::rename(vote, votes_ + "/" + id + "/" + kVoteFile, problem);
    if (problem) return Error{ErrorKind::kIo, "cannot keep " + vote + " in " + votes_ + ": " + problem.message()};
  }
  const std::string aside = root_ + "/" + kDeletedPrefix + id;
  fs::remove_all(aside, problem);
  fs::rename(directory(id), aside, problem);
  if (problem && problem != std::errc::no_such_file_or_directory)
    return Error{ErrorKind::kIo, "cannot delete " + directory(id) + ": " + problem.message()};
  fs::remove_all(aside, problem);  // the next start removes the rest
  return {};
}

}  // namespace tg::daemon

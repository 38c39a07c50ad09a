// The runs' files under state-dir, without an index in memory: RunStore has the index and serializes access. The only
// lock here is that of state-dir itself (state-dir/lock), which admits one process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/store/retention.h"
#include "daemon/store/run_record.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr const char* kRecordFile = "run.json";
inline constexpr const char* kLogFile = "log.txt";
inline constexpr const char* kMetricsFile = "metrics.jsonl";

struct FileSlice {
  std::uint64_t total_bytes = 0;  // the size of the whole file
  std::string data;
};

// Owns an open file descriptor.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

class RunFiles {
 public:
  // Creates the directories and takes the lock; errors name the next action.
  static Result<std::unique_ptr<RunFiles>> open(const std::string& state_dir, const std::string& node);

  std::string directory(const std::string& id) const { return root_ + "/" + id; }
  // Whether the path still leads to the directory that is locked, with this id. Nothing is made below another one.
  Status check_directory(std::uint64_t id) const;
  // Lists the runs, finishes interrupted deletions, and deletes the partial files of interrupted writes.
  Result<std::vector<std::string>> list() const;
  // Reads the record of a run of this node.
  Result<RunRecord> read_record(const std::string& id) const;
  // Deletes the partial files of interrupted writes. Called by the thread that writes the run's states.
  void sweep(const std::string& id) const;
  // Replaces the record atomically. While the run is active, disk space for its last record is reserved.
  Status write_record(const RunRecord& record) const;
  // Recovers a run after its process has died: an active run becomes INTERRUPTED, and its newest recovery point stands
  // for its state. Writes the record.
  Status recover(RunRecord& record) const;
  // Writes the record's interval to views.jsonl, once, and the file's hash to the record.
  Status record_interval(RunRecord& record) const;
  Status record_interval(RunRecord& record, const ViewInterval& interval) const;  // an earlier interval of the run
  // kNotFound if there is no such file.
  Result<FileSlice> read(const std::string& id, const std::string& name, std::uint64_t offset,
                         std::size_t most_bytes) const;
  EndedRun ended_run(const RunRecord& record) const;
  // Renames the run's folder; read_record() gives its record the new id.
  Status rename(const std::string& id, const std::string& to) const;
  // Removes a run atomically, but for its vote: a crash leaves all of it or nothing.
  Status remove(const std::string& id, bool keeps_vote = false) const;
  // Where the run's vote is: with the run, or after its deletion in state-dir/votes.
  std::string vote_directory(const std::string& id) const;
  std::vector<EndedRun> kept_votes() const;  // their runs are deleted
  void delete_vote(const std::string& id) const;

 private:
  bool recover_state(RunRecord& record) const;  // false if there is no recovery point
  RunFiles(const std::string& state_dir, std::string node);

  const std::string state_dir_, root_, votes_;
  const std::string node_;
  const OpenFile lock_;
};

}  // namespace tg::daemon

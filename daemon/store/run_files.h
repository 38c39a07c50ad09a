// The runs' files under state-dir, without an index in memory: RunStore has that, and serializes access. The only lock
// here is that of state-dir itself (state-dir/lock), for one process.
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
  std::uint64_t total_bytes = 0;  // of the whole file
  std::string data;
};

// A file that is open; closes itself.
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
  // Lists the runs, finishes interrupted deletions, and deletes what interrupted writes have left.
  Result<std::vector<std::string>> list() const;
  // Reads the record of a run of this node.
  Result<RunRecord> read_record(const std::string& id) const;
  // Deletes what interrupted writes have left. Called by the thread that writes the run's states.
  void sweep(const std::string& id) const;
  // Replaces it atomically. While the run goes on, room for the last one is kept.
  Status write_record(const RunRecord& record) const;
  // Of a run that a process which is gone has left: where its record says that it goes on it is INTERRUPTED, and the
  // newest state that is whole stands for its state. Writes that down.
  Status recover(RunRecord& record) const;
  // Writes down in views.jsonl what the record says of its stretch, once, and the file's hash in the record.
  Status record_stretch(RunRecord& record) const;
  Status record_stretch(RunRecord& record, const Stretch& stretch) const;  // of an earlier view of it
  // kNotFound if there is no such file.
  Result<FileSlice> read(const std::string& id, const std::string& name, std::uint64_t offset,
                         std::size_t most_bytes) const;
  EndedRun ended_run(const RunRecord& record) const;
  // Removes a run in one instant: a crash leaves no half of it.
  Status remove(const std::string& id) const;

 private:
  bool recover_state(RunRecord& record) const;  // false: there is none
  RunFiles(const std::string& state_dir, std::string node);

  const std::string root_;
  const std::string node_;
  const OpenFile lock_;
};

}  // namespace tg::daemon

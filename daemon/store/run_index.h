// What a node knows of its runs in memory: the record that was written of each, and what status shows of it, which may
// be ahead: a run that has not begun yet, the numbers of one that goes on, or a resume that may still come to nothing.
// Any thread: one lock, never held while a disk is waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/store/run_record.h"
#include "kernels/base/status.h"
#include "schema/control/status.h"

namespace tg::daemon {

class RunIndex {
 public:
  explicit RunIndex(std::string node) : node_(std::move(node)) {}

  // What lies on the disk beside the record.
  struct OnDisk {
    bool record = true;                      // false: the disk holds an older one
    std::vector<std::uint64_t> states = {};  // steps of the states that a resume may begin at
  };
  // It was written: a resume that was shown has begun.
  void put(RunRecord record, OnDisk on_disk);
  // It was written once more: a resume that is shown stays.
  void replace(const RunRecord& record, OnDisk on_disk);
  // Changes the record with that key, of a run that has ended; it is not on the disk before replace().
  struct Changed {
    bool found = false;
    std::optional<RunRecord> record = {};  // if it is another one now
  };
  Changed change(std::uint64_t key, const std::function<void(RunRecord&)>& change);
  void erase(const std::string& id);

  // As RunStore says.
  void update(const schema::RunStatus& status);
  void show_resuming(const std::string& id);
  void show_next(const std::string& id, const std::string& next);
  void forget(const std::string& id);
  Result<std::string> resolve(const std::string& id_or_prefix) const;
  std::optional<RunRecord> find(const std::string& id_or_unique_prefix) const;
  std::vector<schema::RunStatus> statuses() const;

  bool has(const std::string& id) const;
  // As it was written, even while a resume of it is shown.
  std::optional<RunRecord> written(const std::string& id) const;
  std::vector<RunRecord> all_written() const;
  // The newest record is not on the disk, although it was to be.
  bool lacks_record(const std::string& id) const;

 private:
  struct Entry {
    RunRecord shown;
    bool is_written = false;  // as opposed to known from update() alone
    OnDisk on_disk = {};
    std::optional<RunRecord> before = {};  // what was written, while a resume is shown
    RunRecord& written() { return before ? *before : shown; }
    const RunRecord& written() const { return before ? *before : shown; }
  };

  const std::string node_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> runs_;
};

}  // namespace tg::daemon

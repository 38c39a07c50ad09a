// The index of a node's runs in memory: the written record of each, and the status shown for it, which may be ahead: a
// run that has not begun yet, the numbers of an active one, or a resume that may still fail. Any thread: one lock,
// never held while waiting for a disk.
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

  // The state of the run's files.
  struct OnDisk {
    bool record = true;                      // false: the record on the disk is an older one
    std::vector<std::uint64_t> states = {};  // steps of the recovery points
  };
  // Adds a written record; a resume that was shown has begun.
  void put(RunRecord record, OnDisk on_disk);
  // Replaces a record that was written again; a resume that is shown stays.
  void replace(const RunRecord& record, OnDisk on_disk);
  // Changes the record of the ended run with that key, in memory; the caller writes it and calls replace().
  struct Changed {
    bool found = false;
    std::optional<RunRecord> record = {};  // set if the record is different now
  };
  Changed change(std::uint64_t key, const std::function<void(RunRecord&)>& change);
  void erase(const std::string& id);

  // As described in RunStore.
  void update(const schema::RunStatus& status);
  void show_resuming(const std::string& id);
  void show_next(const std::string& id, const std::string& next);
  void forget(const std::string& id);
  Result<std::string> resolve(const std::string& id_or_prefix) const;
  std::optional<RunRecord> find(const std::string& id_or_unique_prefix) const;
  std::vector<schema::RunStatus> statuses() const;

  bool has(const std::string& id) const;
  // The record as it was written, even while a resume of the run is shown.
  std::optional<RunRecord> written(const std::string& id) const;
  std::vector<RunRecord> all_written() const;
  // Whether writing the newest record has failed.
  bool lacks_record(const std::string& id) const;

 private:
  struct Entry {
    RunRecord shown;
    bool is_written = false;  // false: known from update() alone
    OnDisk on_disk = {};
    std::optional<RunRecord> before = {};  // the written record while a resume is shown
    RunRecord& written() { return before ? *before : shown; }
    const RunRecord& written() const { return before ? *before : shown; }
  };

  const std::string node_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> runs_;
};

}  // namespace tg::daemon

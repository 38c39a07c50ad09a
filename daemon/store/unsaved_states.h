// States of ended runs without files of their own on the disk: states in memory that could not be saved, and those for
// which a checkpoint stands. Any thread: one lock, held while a state is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "daemon/store/artefacts.h"
#include "daemon/store/run_files.h"
#include "daemon/store/run_record.h"
#include "kernels/base/status.h"

namespace tg::daemon {

class UnsavedStates {
 public:
  struct Summary {
    std::uint64_t bytes = 0;
    std::string runs;  // their ids, for messages
  };

  explicit UnsavedStates(const RunFiles& files) : files_(files) {}

  // alive: keeps the memory that the images read.
  void keep(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive, std::uint64_t bytes);
  Summary summary() const;
  std::set<std::string> ids() const;
  Result<FileMarks> write(const std::string& id) const;  // writes its files; kNotFound if the state is not here
  void drop(const std::string& id);
  // A slice of one of the files of such a state; kNotFound if there is no such state or file.
  Result<FileSlice> read(const RunRecord& record, const std::string& file, std::uint64_t offset,
                         std::size_t most_bytes) const;

 private:
  struct State {
    Artefacts artefacts;
    std::shared_ptr<const void> alive;
    std::uint64_t bytes = 0;
  };

  const RunFiles& files_;
  mutable std::mutex mutex_;
  std::map<std::string, State> states_;
  mutable std::pair<std::string, Artefacts> opened_;  // the checkpoint that was read last, with its path
};

}  // namespace tg::daemon

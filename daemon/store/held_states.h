// States of ended runs whose files are not on the disk as such: in memory, because it could not be saved, or inside a
// checkpoint that stands for it. Any thread: one lock, held while a state is read.
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

class HeldStates {
 public:
  struct Held {
    std::uint64_t bytes = 0;
    std::string runs;  // their ids, for people
  };

  explicit HeldStates(const RunFiles& files) : files_(files) {}

  // `alive` is what the images read.
  void hold(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive, std::uint64_t bytes);
  Held held() const;
  std::set<std::string> ids() const;
  Result<FileMarks> write(const std::string& id) const;  // its files; kNotFound if it is not held
  void drop(const std::string& id);
  // A slice of one of the files of such a state. kNotFound: it has none.
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
  mutable std::pair<std::string, Artefacts> opened_;  // the checkpoint that was read last, by its path
};

}  // namespace tg::daemon

// Compute threads whose run is over but that are in a call which cannot be interrupted: until it returns they take
// processors and memory. Any thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tg::daemon {

class OrphanedThreads {
 public:
  // The thread of this run, until the token goes, which may outlive this.
  std::shared_ptr<void> add(std::string run) {
    const std::lock_guard lock(runs_->mutex);
    const auto at = runs_->ids.insert(runs_->ids.end(), std::move(run));
    return {nullptr, [runs = runs_, at](void*) {
              const std::lock_guard end(runs->mutex);
              runs->ids.erase(at);
            }};
  }
  // What the node is busy with, for people; "" = nothing.
  std::string what() const {
    const std::lock_guard lock(runs_->mutex);
    if (runs_->ids.empty()) return "";
    return "still busy with run " + runs_->ids.front() +
           ", which is over: its last computation cannot be interrupted, and ends by itself";
  }

 private:
  struct Runs {
    std::mutex mutex;
    std::list<std::string> ids;
  };
  const std::shared_ptr<Runs> runs_ = std::make_shared<Runs>();
};

}  // namespace tg::daemon

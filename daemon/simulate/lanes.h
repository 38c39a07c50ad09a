// Runs the members' learning side by side, in the order in which it is given; take_done() returns the members that are
// done. Used by one thread. With one lane there is no other thread: work is done when it is given.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/step/threads/job_queue.h"
#include "schema/place.h"

namespace tg::daemon {

class Lanes {
 public:
  using Work = std::function<void()>;  // it may not throw
  explicit Lanes(std::size_t count);   // the destructor waits for all work that was given

  void give(Rank member, Work work);
  // Whose work is done, each once. waits: for one at least; there is some in flight.
  std::vector<Rank> take_done(bool waits);

 private:
  std::mutex mutex_;  // guards done_
  std::condition_variable done_changed_;
  std::vector<Rank> done_;
  std::optional<JobQueue> queue_;  // last: its jobs use the rest
};

}  // namespace tg::daemon

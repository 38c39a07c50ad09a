// Threads that carry out the members' learning side by side. Work is taken in the order in which it is given; what is
// done is returned by take_done(). Used by one thread. With one lane there is no thread: work is done when it is given.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class Lanes {
 public:
  using Work = std::function<void()>;  // it may not throw
  explicit Lanes(std::size_t count);
  ~Lanes();  // when all work that was given is done

  void give(Rank member, Work work);
  // Whose work is done, each once. waits: for one at least; there is some under way.
  std::vector<Rank> take_done(bool waits);

 private:
  Lanes() = default;
  void run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable given_changed_, done_changed_;
  std::deque<std::pair<Rank, Work>> given_;
  std::vector<Rank> done_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tg::daemon

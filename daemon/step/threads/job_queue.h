// Threads that carry out jobs in the order in which they are given. Any thread may post.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tg::daemon {

class JobQueue {
 public:
  explicit JobQueue(std::size_t threads = 1);
  ~JobQueue();  // after the jobs that are there

  // A job owns what it touches, and may not throw.
  void post(std::function<void()> job);

 private:
  struct Empty {};
  explicit JobQueue(Empty /*no thread yet*/) {}
  void loop();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tg::daemon

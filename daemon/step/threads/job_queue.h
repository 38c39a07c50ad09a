// Threads that carry out jobs in the order in which they are given. Any thread may post. A disk may stand still: who
// must not wait for it posts the write, and sees by oldest_ms() that it is late.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tg::daemon {

class JobQueue {
 public:
  explicit JobQueue(std::size_t threads = 1);
  ~JobQueue();  // after the jobs that are there

  static constexpr std::size_t kMaxJobs = 4096;

  // A job owns what it touches, and may not throw. False if kMaxJobs wait: the job is not done.
  bool post(std::function<void()> job);
  // How long the oldest job has been there that is not done; nothing if there is none. Of one thread.
  std::optional<std::uint64_t> oldest_ms() const;

 private:
  struct Empty {};
  explicit JobQueue(Empty /*no thread yet*/) {}
  void loop();

  struct Job {
    std::function<void()> what;
    std::uint64_t posted_ms = 0;
  };
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::optional<std::uint64_t> begun_;  // when the job in progress was posted
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tg::daemon

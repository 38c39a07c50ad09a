#include "daemon/step/threads/job_queue.h"

#include <utility>

#include "kernels/base/now.h"

namespace tg::daemon {

// Once the other constructor is done the destructor ends what threads there are, also where one more cannot be made.
JobQueue::JobQueue(std::size_t threads) : JobQueue(Empty()) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool JobQueue::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMaxJobs) return false;
    jobs_.push_back({std::move(job), steady_ms()});
  }
  changed_.notify_one();
  return true;
}

std::optional<std::uint64_t> JobQueue::oldest_ms() const {
  const std::lock_guard lock(mutex_);
  const std::optional<std::uint64_t> posted = begun_ || jobs_.empty() ? begun_ : std::optional(jobs_.front().posted_ms);
  return posted ? std::optional(steady_ms() - *posted) : std::nullopt;
}

void JobQueue::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front().what);
    begun_ = jobs_.front().posted_ms;
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it owns goes before the next wait
    lock.lock();
    begun_.reset();
  }
}

}  // namespace tg::daemon

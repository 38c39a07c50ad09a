#include "daemon/step/threads/job_queue.h"

#include <utility>

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

void JobQueue::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void JobQueue::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it owns goes before the next wait
    lock.lock();
  }
}

}  // namespace tg::daemon

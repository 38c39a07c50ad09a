#include "daemon/simulate/lanes.h"

namespace tg::daemon {

// Once Lanes() is done the destructor ends what threads there are, also where one more cannot be made.
Lanes::Lanes(std::size_t count) : Lanes() {
  for (std::size_t i = 0; count > 1 && i < count; ++i) threads_.emplace_back([this] { run(); });
}

Lanes::~Lanes() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  given_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::give(Rank member, Work work) {
  if (threads_.empty()) {
    work();
    done_.push_back(member);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    given_.emplace_back(member, std::move(work));
  }
  given_changed_.notify_one();
}

std::vector<Rank> Lanes::take_done(bool waits) {
  std::unique_lock lock(mutex_);
  if (waits) done_changed_.wait(lock, [this] { return !done_.empty(); });
  return std::exchange(done_, {});
}

void Lanes::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    given_changed_.wait(lock, [this] { return ends_ || !given_.empty(); });
    if (given_.empty()) return;
    const auto [member, work] = std::move(given_.front());
    given_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    done_.push_back(member);
    done_changed_.notify_one();
  }
}

}  // namespace tg::daemon

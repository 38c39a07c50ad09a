#include "daemon/simulate/lanes.h"

#include <utility>

namespace tg::daemon {

Lanes::Lanes(std::size_t count) {
  if (count > 1) queue_.emplace(count);
}

void Lanes::give(Rank member, Work work) {
  const auto job = [this, member, work = std::move(work)] {
    work();
    const std::lock_guard lock(mutex_);
    done_.push_back(member);
    done_changed_.notify_one();
  };
  if (queue_)
    queue_->post(job);
  else
    job();
}

std::vector<Rank> Lanes::take_done(bool waits) {
  std::unique_lock lock(mutex_);
  if (waits) done_changed_.wait(lock, [this] { return !done_.empty(); });
  return std::exchange(done_, {});
}

}  // namespace tg::daemon

#include "daemon/step/threads/crew.h"

#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {

Crew::Crew(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Hooks hooks)
    : workers_(std::move(workers)), timeline_(std::move(timeline)), hooks_(std::move(hooks)) {
  for (std::size_t i = 0; i < workers_.size(); ++i) threads_.emplace_back([this, i] { help(i); });
}

void Crew::end() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  waiting_.clear();
  changed_.notify_all();
}

Crew::~Crew() {
  end();
  for (std::thread& thread : threads_) thread.join();
}

bool Crew::has_room() const {
  if (workers_.empty()) return false;
  const std::lock_guard lock(mutex_);
  return !ends_ && waiting_.size() + under_way_ < 2 * workers_.size();
}

void Crew::give(Piece piece, std::uint64_t step, std::size_t bucket) {
  {
    const std::lock_guard lock(mutex_);
    TG_CHECK(!ends_ && waiting_.size() + under_way_ < 2 * workers_.size(), waiting_.size(), under_way_);
    waiting_.push_back({std::move(piece), step, bucket});
  }
  changed_.notify_one();
}

void Crew::help(std::size_t index) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    Given given = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    lock.unlock();
    const Timeline::Clock::time_point begin = Timeline::Clock::now();
    PieceResult result = workers_[index]->carry_out(given.piece, hooks_.made);
    if (timeline_->on())
      timeline_->add(Timeline::helper(index), piece_name(given.piece), given.step, begin, Timeline::Clock::now(),
                     {static_cast<std::int64_t>(given.bucket), result.sent_bytes});
    hooks_.done(std::move(given.piece), std::move(result));
    lock.lock();
    --under_way_;
  }
}

}  // namespace tg::daemon

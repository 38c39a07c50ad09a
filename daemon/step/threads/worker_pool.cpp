#include "daemon/step/threads/worker_pool.h"

#include <exception>
#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

Timeline::Detail detail_of(const Task& task, std::uint64_t sent_bytes) {
  return {static_cast<std::int64_t>(bucket_of(task)), sent_bytes};
}

}  // namespace

WorkerPool::WorkerPool(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Post post)
    : workers_(std::move(workers)), timeline_(std::move(timeline)), post_(std::move(post)) {
  for (std::size_t i = 0; i < workers_.size(); ++i) threads_.emplace_back([this, i] { run_helper(i); });
}

void WorkerPool::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  changed_.notify_all();
}

WorkerPool::~WorkerPool() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::work(Member& member) {
  if (workers_.empty()) return execute_here(member);
  bool handed_out = false;
  while (const std::optional<ThreadRole> role = idle_helper()) {
    std::optional<Task> task = member.next_task(*role);
    if (!task) break;
    submit(*std::move(task), member.origin());
    handed_out = true;
  }
  return handed_out || member.use_idle_time();
}

bool WorkerPool::execute_here(Member& member) {
  std::optional<Task> task = member.next_task(ThreadRole::kOnlyThread);
  if (!task) return member.use_idle_time();
  const std::uint64_t step = member.step().value();
  const char* const name = task_name(*task);
  Timeline::Detail detail = detail_of(*task, 0);
  const Timeline::Clock::time_point begin = Timeline::Clock::now();
  detail.bytes = member.execute(*std::move(task));
  if (timeline_->is_enabled())
    timeline_->add(Timeline::Track::kNode, name, step, begin, Timeline::Clock::now(), detail);
  return true;
}

std::optional<ThreadRole> WorkerPool::idle_helper() const {
  const std::lock_guard lock(mutex_);
  if (stopped_ || tasks() >= max_tasks()) return std::nullopt;
  return tasks() < workers_.size() ? ThreadRole::kIdleThread : ThreadRole::kBusyThread;
}

void WorkerPool::submit(Task task, const Origin& of) {
  {
    const std::lock_guard lock(mutex_);
    TG_CHECK(!stopped_ && tasks() < max_tasks(), waiting_.size(), in_flight_);
    waiting_.push_back({std::move(task), of});
  }
  changed_.notify_one();
}

void WorkerPool::run_helper(std::size_t index) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    Queued next = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_flight_;
    lock.unlock();
    const Timeline::Clock::time_point begin = Timeline::Clock::now();
    StepEvent outcome = EngineFailed{};
    try {
      TaskResult result = workers_[index]->execute(next.task, [this, of = next.of](MadeFrame total) {
        post_(TotalMade{of, std::move(total)});
      });
      if (timeline_->is_enabled())
        timeline_->add(Timeline::helper(index), task_name(next.task), next.of.step.value(), begin,
                       Timeline::Clock::now(), detail_of(next.task, result.sent_bytes));
      outcome = TaskDone{next.of, std::move(next.task), std::move(result)};
    } catch (const std::exception& error) {
      outcome = EngineFailed{next.of, error.what()};
    }
    lock.lock();
    --in_flight_;  // before the event is posted: its receiver may submit the next task
    lock.unlock();
    post_(std::move(outcome));
    lock.lock();
  }
}

}  // namespace tg::daemon

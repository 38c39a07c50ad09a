// The threads that execute an exchange's tasks: helpers, each with a Worker of its own, or none: then the node's
// thread executes all of them.
//
// With helpers the node's thread takes no task itself: what a helper has made leaves at once, and a helper that has
// ended gets the next task at once. What comes of a task is posted as StepEvents, on the helper's thread: TaskDone,
// or EngineFailed where its tensor kernels throw. At the end what is in flight is waited for (a task takes
// milliseconds and blocks on nothing), what waits is dropped, and nothing is posted any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/step/member.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/worker.h"

namespace tg::daemon {

class WorkerPool {
 public:
  using Post = std::function<void(StepEvent&&)>;  // must not block
  // A helper for every worker.
  WorkerPool(std::vector<std::unique_ptr<Worker>> workers, std::shared_ptr<Timeline> timeline, Post post);
  ~WorkerPool();

  // Hands out as many tasks as the helpers take, or executes one on this thread if there are none. Without a task
  // this thread does a part of what waits for such a time (Member::use_idle_time); false if nothing does.
  bool work(Member& member);
  // So many work() hands out or executes at a time.
  std::size_t max_tasks() const { return workers_.empty() ? 1 : kMaxTasks * workers_.size(); }
  // The helper that would take the next task; none while each has one in flight and one that waits.
  std::optional<ThreadRole> idle_helper() const;
  void submit(Task task, const Origin& of);
  // Nothing more is begun: what waits is dropped, and no helper is free any more. The destructor waits for the rest.
  void stop();

 private:
  struct Queued {
    Task task;
    Origin of;
  };
  static constexpr std::size_t kMaxTasks = 2;  // a helper's tasks, in flight or waiting
  bool execute_here(Member& member);
  void run_helper(std::size_t index);
  std::size_t tasks() const { return waiting_.size() + in_flight_; }

  const std::vector<std::unique_ptr<Worker>> workers_;
  const std::shared_ptr<Timeline> timeline_;
  const Post post_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Queued> waiting_;
  std::size_t in_flight_ = 0;
  bool stopped_ = false;

  std::vector<std::thread> threads_;  // last: they use everything above
};

}  // namespace tg::daemon

// The thread that writes states to the disk: checkpoints beside training, the last state after it. One job after the
// other. A disk that hangs holds up only this thread. Any thread may post.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tg::daemon {

class Saver {
 public:
  Saver() : thread_([this] { loop(); }) {}
  ~Saver();  // after the jobs that are there

  // A job owns what it touches.
  void post(std::function<void()> job);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tg::daemon

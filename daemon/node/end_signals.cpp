#include "daemon/node/end_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/base/line_writer.h"

namespace tg::daemon {
namespace {

constexpr int kExitAsked = 0, kExitOverdue = 1;

bool ignored(int signal_number) {
  struct sigaction before {};
  return sigaction(signal_number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
}

}  // namespace

struct EndSignals::State {
  sigset_t signals{};
  std::mutex mutex;
  std::condition_variable changed;
  bool waiting = false;  // this and the following are guarded by mutex
  int received = 0;
  std::chrono::seconds timeout{};

  void handle() {
    int number = 0;
    sigwait(&signals, &number);
    {
      const std::lock_guard lock(mutex);
      if (!waiting) _exit(kExitAsked);
      received = number;
      changed.notify_all();
    }
    std::this_thread::sleep_for(timeout);
    LineWriter(STDERR_FILENO, [](std::uint64_t) { return ""; })
        .write("tgd: something is stuck: no orderly shutdown within " + std::to_string(timeout.count()) +
               " s; exiting now");
    _exit(kExitOverdue);
  }
};

EndSignals::EndSignals() : state_(std::make_shared<State>()) {
  sigemptyset(&state_->signals);
  for (const int number : {SIGTERM, SIGINT}) sigaddset(&state_->signals, number);
  if (!ignored(SIGHUP)) sigaddset(&state_->signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
  std::thread([state = state_] { state->handle(); }).detach();
}

int EndSignals::wait(std::chrono::seconds timeout) {
  std::unique_lock lock(state_->mutex);
  state_->waiting = true;
  state_->timeout = timeout;
  state_->changed.wait(lock, [this] { return state_->received != 0; });
  return state_->received;
}

}  // namespace tg::daemon

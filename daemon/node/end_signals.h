// The signals that end a node: SIGTERM, SIGINT and, unless nohup has it ignored, SIGHUP. A separate thread takes them,
// so that a stuck thread cannot keep a node from ending: there is a limited time for an orderly end, then the process
// exits with status 1. Before wait() is called there is nothing to put in order, and it exits at once. Made before
// every other thread, because they inherit the mask of signals.
#pragma once

#include <chrono>
#include <memory>

namespace tg::daemon {

class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Waits for a signal and returns its number. From then on the process has `patience` to end.
  int wait(std::chrono::seconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tg::daemon

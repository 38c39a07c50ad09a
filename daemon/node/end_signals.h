// The signals that end a node: SIGTERM, SIGINT and, unless nohup has it ignored, SIGHUP. A thread of its own takes
// them, so that nothing that is stuck elsewhere keeps a node from ending: once asked to end, it has its patience for an
// orderly end, then the process exits with status 1. Before wait() was called there is nothing to bring in order: it
// exits at once. Made before every other thread, because they inherit the mask of signals.
#pragma once

#include <chrono>
#include <memory>

namespace tg::daemon {

class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Until a signal came: its number. From then on the process has `patience`.
  int wait(std::chrono::seconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tg::daemon

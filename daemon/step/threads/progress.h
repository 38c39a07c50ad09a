// Where this node is inside a run: written by the node's and the compute thread, read by the control thread for beats.
#pragma once

#include <atomic>
#include <cstdint>

#include "daemon/step/threads/left_behind.h"
#include "schema/control/control.h"

namespace tg::daemon {

struct Progress {
  std::atomic<schema::Phase> phase{schema::Phase::kIdle};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> count{0};  // grows whenever anything gets done
  LeftBehind left_behind;               // of earlier runs
};

}  // namespace tg::daemon

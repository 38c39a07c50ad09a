// Where this node is inside a run: written by the node's and the compute thread, read by the control thread for beats.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "daemon/step/threads/orphaned_threads.h"
#include "engine/data/text_of.h"
#include "schema/control/control.h"

namespace tg::daemon {

struct Progress {
  std::atomic<schema::Phase> phase{schema::Phase::kIdle};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint32_t> view{0};                    // the run's; 0 outside one
  std::atomic<std::uint64_t> count{0};                   // grows whenever anything gets done
  std::atomic<std::uint64_t> images_done{0}, images{0};  // while a set is read, for a run or a dry run; else 0 of 0
  OrphanedThreads orphaned_threads;                      // left by earlier runs
};

// "1,200 of 60,000 images"
inline std::string images_text(std::uint64_t done, std::uint64_t of) {
  return engine::grouped(done) + " of " + engine::grouped(of) + " images";
}

}  // namespace tg::daemon

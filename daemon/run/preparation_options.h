// The options to prepare a run on this node (prepare.h) and to fit it to a view (rebuild.h). Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/store/run_record.h"
#include "daemon/store/state_facts.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

// The state from which a resumed run begins, and the facts of its record on which its bits depend.
struct SavedStart {
  schema::StateId state;
  std::string directory;                    // the run's
  std::shared_ptr<const RunRecord> record;  // before the resume
  bool from_the_beginning = false;          // state 0: no file is needed
  schema::StateCounters counters;
  std::uint64_t model_hash = 0, data_hash = 0;
  std::string engine_build;   // "" = any
  std::uint64_t threads = 0;  // 0 = any
};

struct PreparationOptions {
  schema::JobSpec job;
  std::string data_dir;  // job.data_dir, or the node's
  std::uint64_t threads = 1;
  std::string node;                // for messages
  std::string unsaved_note = {};   // the end of an error about memory
  std::uint64_t memory_bytes = 0;  // the run's limit; 0 = what is free on this machine
  std::string memory_dir = {};     // the folder of what was measured on pictures
  std::optional<SavedStart> start = {};
  // Called with a line of progress at intervals while data are read; any thread.
  std::function<void(const std::string&)> log_progress = [](const std::string&) {};
  // Called after every image, and with 0 of 0 at the end; any thread.
  std::function<void(std::size_t done, std::size_t of)> show_images = [](std::size_t, std::size_t) {};
};

}  // namespace tg::daemon

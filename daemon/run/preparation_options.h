// What a run is prepared from on this node (preparation.h), and fitted to a view with (fitting.h). Values.
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

// Where a resumed run begins, and what its record says that its bits depend on.
struct SavedStart {
  schema::StateId state;
  std::string directory;                    // of the run
  std::shared_ptr<const RunRecord> record;  // as it was before
  bool from_the_beginning = false;          // no file is needed
  schema::StateCounters counters;
  std::uint64_t model_hash = 0, data_hash = 0;
  std::string engine_build;   // "" = may be another one
  std::uint64_t threads = 0;  // 0 = may be other ones
};

struct PreparationOptions {
  schema::JobSpec job;
  std::string data_dir;  // job.data_dir, or the node's
  std::uint64_t threads = 1;
  std::string node;                // for messages
  std::string unsaved_note = {};   // for the error that less is left than is configured
  std::uint64_t memory_bytes = 0;  // that the run may take at most; 0 = what is left on this machine
  std::string memory_dir = {};     // where to remember what was found out of pictures
  std::optional<SavedStart> start = {};
  // A line of progress, now and then, while data are read; any thread.
  std::function<void(const std::string&)> say = [](const std::string&) {};
  // The same after every image, and 0 of 0 at the end.
  std::function<void(std::size_t done, std::size_t of)> images = [](std::size_t, std::size_t) {};
};

}  // namespace tg::daemon

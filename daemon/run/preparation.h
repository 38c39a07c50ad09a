// Prepares a run on this node: data, model, engine and the initial state in its home, whether everything fits into
// memory, the hashes that members compare, and how long a step takes here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"
#include "schema/options/job.h"

namespace tg::daemon {

struct PreparationOptions {
  schema::JobSpec job;
  std::string data_dir;  // job.data_dir, or the node's
  std::uint64_t threads = 1;
  Rank self;
  Per<Rank, std::uint16_t> weights;  // of all members' shares of a batch
  std::string node;                  // for messages
  std::string unsaved_note = {};     // for the error that less is left than is configured
  std::uint64_t memory_bytes = 0;    // that the run may take at most; 0 = what is left on this machine
  std::string memory_dir = {};       // where to remember what was found out of pictures
  // A line of progress, now and then, while data are read; any thread.
  std::function<void(const std::string&)> say = [](const std::string&) {};
  // The same after every image, and 0 of 0 at the end.
  std::function<void(std::size_t done, std::size_t of)> images = [](std::size_t, std::size_t) {};
};

// On the thread that will train with what comes of it; takes seconds. compute outlives the kit. advance() is
// called whenever something got done, and may throw something that is no std::exception to end it; nothing else is
// thrown. Errors name the node where it is to blame.
Result<TrainingKit> prepare(const PreparationOptions& options, const engine::ComputeDevice& compute,
                            const std::function<void()>& advance);

}  // namespace tg::daemon

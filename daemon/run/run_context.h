// What a node lends its runs, and what their threads tell it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/mesh/mesh.h"
#include "daemon/metrics/metrics.h"
#include "daemon/run/saver.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/step/threads/progress.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_store.h"
#include "engine/compute_device.h"
#include "kernels/base/log.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

// Events for the node's thread. key: of the run that they belong to.
struct RunPrepared {
  std::uint64_t key = 0;
  Result<std::shared_ptr<const Prepared>> result;
};
struct StepHappened {
  std::uint64_t key = 0;
  StepEvent event;
};

struct RunSaved {  // or not
  std::uint64_t key = 0;
  schema::SaveState save = schema::SaveState::kNotSaved;
  std::string problem;                         // why not
  FileMarks files;                             // that were written
  std::shared_ptr<const Artefacts> artefacts;  // of a state that is only in memory
};
struct CheckpointWritten {  // or not
  std::uint64_t key = 0;
  std::uint64_t step = 0;
  Status status;
};

// Outlives the runs.
struct RunContext {
  const schema::NodeConfig& config;
  Per<Seat, std::string> names;  // of all nodes
  const kernels::Kernels& kernels;
  const engine::ComputeDevice& compute;  // and the home of gradients and state
  Mesh& mesh;
  schema::FramePool& pool;
  RunStore& store;
  Saver& saver;
  Progress& progress;
  const FaultInjection& fault;
  Metrics& metrics;
  Log& log;
  std::function<void(RunPrepared)> prepared;            // any thread; does not block
  std::function<void(StepHappened&&)> happened;         // any thread; does not block
  std::function<void(RunSaved)> saved;                  // any thread; does not block
  std::function<void(CheckpointWritten)> checkpointed;  // any thread; does not block
  std::uint64_t threads = 1;
  std::string build;

  std::uint64_t threads_for(const schema::JobSpec& job) const { return job.threads ? job.threads : threads; }
  // The weights of all nodes' shares of a batch, as far as they have told.
  Per<Seat, std::uint16_t> weights() const {
    Per<Seat, std::uint16_t> all;
    for (const Seat seat : names.places()) all.push_back(mesh.links().weight(seat));
    return all;
  }
};

}  // namespace tg::daemon

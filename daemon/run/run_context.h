// What a node lends its runs, and what their threads tell it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/mesh/mesh.h"
#include "daemon/metrics/metrics.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/step/threads/job_queue.h"
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
  std::uint64_t number = 0;  // of the Run: one that came to nothing may have had the same key
  Result<std::shared_ptr<const PreparedView>> result;
};
struct RunFitted {  // to a view, or not
  std::uint64_t key = 0;
  std::uint32_t view = 0;
  Result<std::shared_ptr<const PreparedView>> result;
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
struct HistoryRead {  // views.jsonl, as far as it was to be written by then
  std::uint64_t key = 0;
  std::string views;
};
struct CheckpointWritten {  // or not
  std::uint64_t key = 0;
  std::uint64_t step = 0;
  Status status;
};

// Everything that it refers to outlives the runs.
struct RunContext {
  struct Self {
    const schema::NodeConfig& config;
    Per<Seat, std::string> names;  // of all nodes
    std::string build;
    std::uint64_t directory = 0;    // number of the state directory (store/directory_id.h)
    std::uint64_t incarnation = 0;  // of this process
  };
  struct Machine {
    const kernels::Kernels& kernels;
    const engine::ComputeDevice& compute;  // and the memory space of gradients and state
    std::uint64_t threads = 1;             // for a job that does not say
    const FaultInjection& fault;
  };
  struct Network {
    Mesh& mesh;
    schema::FramePool& pool;
  };
  struct Disk {
    RunStore& store;
    JobQueue& saver;
  };
  struct News {  // where it is shown
    Progress& progress;
    Metrics& metrics;
    Log& log;
  };
  struct Tell {  // the node's thread. Called by any thread; does not block
    std::function<void(RunPrepared)> prepared;
    std::function<void(RunFitted)> fitted;
    std::function<void(StepHappened&&)> happened;
    std::function<void(RunSaved)> saved;
    std::function<void(CheckpointWritten)> checkpointed;
    std::function<void(HistoryRead)> past_read;
  };
  Self self;
  Machine machine;
  Network network;
  Disk disk;
  News news;
  Tell tell;

  std::uint64_t threads_for(const schema::JobSpec& job) const { return job.threads ? job.threads : machine.threads; }
  const std::string& data_dir_for(const schema::JobSpec& job) const {
    return job.data_dir.empty() ? self.config.data_dir : job.data_dir;
  }
  // The weights of all nodes' shares of a batch, as far as they have told.
  Per<Seat, std::uint16_t> weights() const {
    Per<Seat, std::uint16_t> all;
    for (const Seat seat : self.names.places()) all.push_back(network.mesh.links().weight(seat));
    return all;
  }
};

}  // namespace tg::daemon

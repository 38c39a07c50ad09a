// The parts of a node that its runs use, and the events that their threads send back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/membership/duration_text.h"
#include "daemon/mesh/mesh.h"
#include "daemon/metrics/metrics.h"
#include "daemon/step/step_event.h"
#include "daemon/step/threads/fault_injection.h"
#include "daemon/step/threads/job_queue.h"
#include "daemon/step/threads/progress.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/line_file.h"
#include "daemon/store/run_store.h"
#include "engine/compute_device.h"
#include "kernels/base/log.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

// Events for the node's thread.
struct RunPrepared {
  std::uint64_t run_key = 0;
  std::uint64_t number = 0;  // the Run's: a failed start may have had the same key
  Result<std::shared_ptr<const PreparedView>> result;
};
struct RunRebuilt {  // to a view, or an error
  std::uint64_t run_key = 0;
  std::uint32_t view = 0;
  Result<std::shared_ptr<const PreparedView>> result;
};
struct RunStepEvent {
  std::uint64_t run_key = 0;
  StepEvent event;
};

struct RunSaved {  // or not: see save
  std::uint64_t run_key = 0;
  schema::SaveState save = schema::SaveState::kNotSaved;
  std::string problem;                         // why it was not saved
  FileMarks files;                             // the files that were written
  std::shared_ptr<const Artefacts> artefacts;  // a state that is only in memory
};
struct HistoryRead {  // views.jsonl and metrics.jsonl with everything posted to the saver before
  std::uint64_t run_key = 0;
  std::string views;
  LineFile::Lines metrics;
};
struct CheckpointWritten {  // or an error
  std::uint64_t run_key = 0;
  std::uint64_t step = 0;
  Status status;
};

// The parts of a node that its runs use. All of them outlive the runs.
struct RunContext {
  struct Self {
    const schema::NodeConfig& config;
    schema::NodeList names;  // config.nodes
    std::string build;
    std::uint64_t directory = 0;    // the state directory's number (store/directory_id.h)
    std::uint64_t incarnation = 0;  // this process's
  };
  struct Machine {
    const kernels::Kernels& kernels;
    const engine::ComputeDevice& compute;  // with the memory space of gradients and state
    std::uint64_t threads = 1;             // for a job without its own number
    const FaultInjection& fault;
  };
  struct Network {
    Mesh& mesh;
    schema::FramePool& pool;
  };
  struct Storage {
    RunStore& store;
    JobQueue& saver;   // states, which take long
    JobQueue& writer;  // votes, records and marks: each is done within peer-timeout, or the disk stands still
  };
  struct News {
    Progress& progress;
    Metrics& metrics;
    Log& log;
  };
  struct Hooks {  // post to the node's thread. Any thread calls them; they do not block
    std::function<void(RunPrepared)> on_prepared;
    std::function<void(RunRebuilt)> on_rebuilt;
    std::function<void(RunStepEvent&&)> on_step_event;
    std::function<void(RunSaved)> on_saved;
    std::function<void(CheckpointWritten)> on_checkpoint_written;
    std::function<void(HistoryRead)> on_history_read;
  };
  Self self;
  Machine machine;
  Network network;
  Storage storage;
  News news;
  Hooks hooks;

  std::uint64_t threads_for(const schema::JobSpec& job) const { return job.threads ? job.threads : machine.threads; }
  const std::string& data_dir_for(const schema::JobSpec& job) const {
    return job.data_dir.empty() ? self.config.data_dir : job.data_dir;
  }
  // The weights of all nodes' shares of a batch, as far as they are known.
  Per<Seat, std::uint16_t> weights() const {
    Per<Seat, std::uint16_t> all(self.names.kMaxNodes, 1);
    for (const Seat seat : self.names.places()) all[seat] = network.mesh.links().weight(seat);
    return all;
  }
};

// Says that this node's disk stands still; "" = it does not.
inline std::string disk_problem(const JobQueue& writer, const schema::NodeConfig& config) {
  if (writer.oldest_ms().value_or(0) < config.peer_timeout_ms) return "";
  return "the disk of " + config.node + " stands still: a write in " + config.state_dir + " takes more than " +
         seconds_text(config.peer_timeout_ms) + "; it goes on by itself when the disk does";
}

}  // namespace tg::daemon

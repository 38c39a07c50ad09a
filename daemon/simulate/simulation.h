// `tgd simulate JOB`: a run with all its members in this process, each with its Exchange and Worker, their frames
// encoded and decoded (simulated_view.h), and no network: what N nodes with a thread each would compute, bit
// by bit. It goes from state to state in slices of a few seconds; with each it may end, and every half minute its state
// is saved, so that the same call goes on from there. Called by one thread; members learn on others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

struct SimulationOptions {
  schema::JobSpec job;
  std::vector<std::uint16_t> weights;   // the members', by rank
  std::optional<std::string> data_dir;  // in place of the job's
  std::uint64_t threads = 1;            // members that learn at once
  bool all_replicas = false;            // one for each member, compared; else rank 0's serves all
  std::uint64_t gradients_every = 0;    // steps, of a report on the first member's gradient; 0 = none
  std::string directory;                // simulation_folder.h
};

// say: a line for people; ends(): whether to end with what is done. Says whether the run is complete; an error names
// what cannot be computed here, and what to do.
Result<bool> simulate(const SimulationOptions& options, const std::function<void(const std::string&)>& say,
                      const std::function<bool()>& ends);

}  // namespace tg::daemon

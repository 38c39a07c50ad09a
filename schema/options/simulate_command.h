// The command line of `tgd simulate JOB`, which computes a run with all its members in one process:
// daemon/simulate/simulation.h. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::schema {

inline constexpr std::string_view kSimulateCommand = "simulate";

struct SimulateCommand {
  std::string job_file;
  std::vector<std::string> settings;     // KEY=VALUE, in their order
  std::vector<std::uint16_t> weights;    // one per member, by rank: its share of a batch
  std::optional<std::string> data_dir;   // replaces the job's
  std::optional<std::uint64_t> threads;  // members computed at the same time; none = one per processor
  bool all_replicas = false;             // each member keeps the state; else the first keeps it for all
  std::uint64_t gradients_every = 0;     // steps; 0 = none
  std::string output;                    // folder
  std::string help;                      // if not empty, print this and nothing else
};
// argv as given to main; argv[1] is the command.
Result<SimulateCommand> parse_simulate_command(int argc, const char* const* argv);

}  // namespace tg::schema

// The command line of `tgd recompute DIR`, which computes a run again: daemon/simulate/recompute.h. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::schema {

inline constexpr std::string_view kRecomputeCommand = "recompute";

struct RecomputeCommand {
  std::string directory;                 // the run's folder
  std::optional<std::string> data_dir;   // replaces the job's
  std::optional<std::uint64_t> threads;  // per member's engine; replaces the recorded number
  std::string help;                      // if not empty, print this and nothing else
};
// argv as given to main; argv[1] is the command.
Result<RecomputeCommand> parse_recompute_command(int argc, const char* const* argv);

}  // namespace tg::schema

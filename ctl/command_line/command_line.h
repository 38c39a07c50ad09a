// tgctl's command line as a Command. The verbs and their options are one table (command_table.h), from which parsing,
// help and suggestions come. Pure: argv and the environment's values come as arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::ctl {

inline constexpr const char* kLastRun = "@last";  // as RUN: the newest

enum class Verb : std::uint8_t {
  kStart,
  kResume,
  kStatus,
  kStop,
  kLeave,
  kJoin,
  kFetch,
  kExport,
  kReport,
  kDelete,
  kList,
  kCompare,
  kData,
  kLogs,
  kWait,
  kDoctor,
  kPlan,
  kModels,
  kKeygen,
  kVersion
};

struct Command {
  Verb verb = Verb::kVersion;
  std::string help;                        // if not empty, print this and nothing else
  bool version = false;                    // --version: tgctl's own, without asking a node
  std::string address;                     // "" = this machine's node
  std::string key_file;                    // --key, TGCTL_KEY; "" = none
  std::string operand;                     // JOB, RUN, DIR or NODE; "" if omitted
  std::vector<std::string> more_operands;  // compare
  // start, resume, plan
  std::vector<std::string> settings;
  std::vector<std::string> without;  // start, resume
  std::string id;
  bool detach = false;
  bool dry_run = false;
  // resume
  std::optional<std::uint64_t> from_step;
  bool any_build = false;
  // status, list
  bool json = false;
  bool watch = false;
  bool check = false;
  // fetch
  std::string output;
  bool partial = false;
  bool force = false;
  // export
  std::string format;  // csv, tensorboard
  // logs
  bool follow = false;
  std::string node;
  // report
  std::uint64_t every_ms = 0;  // 0 = once
  bool mistakes = false;
  // wait
  std::string until = "finished";
  std::optional<std::uint64_t> timeout_ms;  // none: no limit
  // doctor
  std::uint64_t seconds = 3;
  bool no_bandwidth = false;
  // plan, doctor
  double link_mbps = 0;  // 0 = as measured
  std::uint64_t nodes = 0;
  std::uint64_t compute_ms = 0;  // 0 = as timed on the asked node
  // keygen
  std::string operator_name;
  bool read_only = false;
  std::string rotate;  // add, use, drop
};

// The values of TGCTL_ADDRESS and TGCTL_KEY, null where not set.
Result<Command> parse_command(int argc, const char* const* argv, const char* environment_address,
                              const char* environment_key = nullptr);

std::string general_help();
std::string verb_help(Verb verb);
std::string whole_help();  // the two above, of every verb: tgctl(1) is made of it
std::vector<std::string> verb_names();

}  // namespace tg::ctl

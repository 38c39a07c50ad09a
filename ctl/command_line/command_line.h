// The verbs of tgctl and their options, as one table: parsing, help and suggestions all come from it.
// Pure: argv and the value of TGCTL_ADDRESS come as arguments. Boost.Program_options is met in the .cpp only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::ctl {

inline constexpr const char* kDefaultAddress = "127.0.0.1:7701";
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
  kCompletion,
  kMan,
  kVersion,
  kComplete  // what the scripts of completion ask; not in the table
};

struct Command {
  Verb verb = Verb::kVersion;
  std::string help;      // if not empty, print this and nothing else
  bool version = false;  // --version: tgctl's own, asks nobody
  std::string address;
  std::string key_file;                    // --key, TGCTL_KEY; "" = none
  std::string operand;                     // JOB, RUN, DIR or NODE, "" where it may be left out and was
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
  bool shows = false;  // data: show
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
  std::optional<std::uint64_t> timeout_ms;  // without one it waits as long as it takes
  // doctor
  std::uint64_t seconds = 3;
  bool no_bandwidth = false;
  // plan, doctor
  double link_mbps = 0;  // 0 = not told
  std::uint64_t nodes = 0;
  std::uint64_t compute_ms = 0;  // 0 = as timed on the asked node
  // keygen
  std::string operator_name;
  bool read_only = false;
  std::string rotate;  // add, use, drop
  // complete
  std::vector<std::string> words;  // the program's name and what follows it
};

// The values of TGCTL_ADDRESS and TGCTL_KEY, null where not set.
Result<Command> parse_command(int argc, const char* const* argv, const char* environment_address,
                              const char* environment_key = nullptr);

std::string general_help();
std::string verb_help(Verb verb);
std::vector<std::string> verb_names();

// command_manual.cpp: for man(1); the name is one of those.
const std::vector<std::string>& manual_names();
std::string manual_page(const std::string& name);

}  // namespace tg::ctl

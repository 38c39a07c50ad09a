// The retention policy: chooses the runs to delete so that a node keeps no more than configured. Pure.
//
// Starts that never began have a limit of their own (kMaxUnstartedKept) and displace no other runs. The others are
// deleted in this order: runs without a model, runs with a fetched model, FAILED ones, then the rest; within each group
// the oldest first. Age alone deletes no model that was never fetched, and the newest run always stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tg::daemon {

struct RetentionLimits {
  std::uint64_t runs = 200;
  std::uint64_t age_ms = 0;  // since the run's end; 0 = no limit
  std::uint64_t bytes = 0;   // all runs together; 0 = no limit
};

// What is kept of the votes in deleted runs.
inline constexpr RetentionLimits kKeptVotes{.runs = 64, .age_ms = std::uint64_t{30} * 24 * 3600 * 1000};

struct EndedRun {
  std::string id;
  std::int64_t ended_ms = 0;
  std::uint64_t bytes = 0;
  bool has_begun = false, failed = false;
  bool has_model = false, fetched = false;
};

struct Deletion {
  std::string id;
  std::string why;         // "keep-runs = 200"
  bool unfetched = false;  // its model was never fetched
};

std::vector<Deletion> runs_to_delete(std::vector<EndedRun> runs, const RetentionLimits& limits, std::int64_t now_ms);

}  // namespace tg::daemon

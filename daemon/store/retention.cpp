#include "daemon/store/retention.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "schema/limits.h"

namespace tg::daemon {
namespace {

// Runs of a higher worth are deleted later.
int worth(const EndedRun& run) {
  if (!run.has_model) return 0;
  if (run.fetched) return 1;
  return run.failed ? 2 : 3;
}

}  // namespace

std::vector<Deletion> runs_to_delete(std::vector<EndedRun> runs, const RetentionLimits& limits, std::int64_t now_ms) {
  std::vector<Deletion> gone;
  std::sort(runs.begin(), runs.end(), [](const EndedRun& a, const EndedRun& b) {
    return std::tie(a.ended_ms, a.id) < std::tie(b.ended_ms, b.id);
  });
  const auto drop = [&](std::vector<EndedRun>& from, std::vector<EndedRun>::iterator run, std::string why) {
    gone.push_back({run->id, std::move(why), run->has_model && !run->fetched});
    from.erase(run);
  };
  const auto begins =
      std::stable_partition(runs.begin(), runs.end(), [](const EndedRun& run) { return !run.has_begun; });
  std::vector<EndedRun> unstarted(runs.begin(), begins);
  runs.erase(runs.begin(), begins);
  while (unstarted.size() > schema::kMaxUnstartedKept)
    drop(unstarted, unstarted.begin(), std::to_string(schema::kMaxUnstartedKept) + " starts that never began are kept");
  if (runs.empty()) return gone;
  const EndedRun newest = std::move(runs.back());
  runs.pop_back();
  if (limits.age_ms > 0) {
    for (auto run = runs.begin(); run != runs.end();) {
      const bool due = now_ms - run->ended_ms > static_cast<std::int64_t>(limits.age_ms) && worth(*run) < 2;
      if (!due) {
        ++run;
        continue;
      }
      const auto at = run - runs.begin();
      drop(runs, run, "keep-age");
      run = runs.begin() + at;
    }
  }
  std::stable_sort(runs.begin(), runs.end(), [](const EndedRun& a, const EndedRun& b) { return worth(a) < worth(b); });
  while (!runs.empty() && runs.size() + 1 > limits.runs)
    drop(runs, runs.begin(), "keep-runs = " + std::to_string(limits.runs));
  std::uint64_t bytes = newest.bytes;
  for (const EndedRun& run : runs) bytes += run.bytes;
  while (limits.bytes > 0 && !runs.empty() && bytes > limits.bytes) {
    bytes -= runs.front().bytes;
    drop(runs, runs.begin(), "keep-mib = " + std::to_string(limits.bytes >> 20));
  }
  return gone;
}

}  // namespace tg::daemon

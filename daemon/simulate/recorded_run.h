// A run as its folder tells it: what it takes to compute it again, and what has to come of that. The folder is what
// tgctl fetch made, or a node's own of that run.
//
//   run.json       the record of the member whose folder or copy it is
//   views.jsonl    its intervals (store/interval.h); a run of one interval needs none: run.json has the newest
//   members.json   what each member computed with; without it, only what run.json says of its writer
//   metrics.jsonl  the loss of each step; without it nothing says where a difference begins
//
// A interval that began before the end of another one threw away what came after: legs are the steps that led to the
// end. Read by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/store/run_record.h"
#include "daemon/store/view_interval.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

// The steps of a interval that led to the end.
struct Leg {
  ViewInterval interval;
  schema::JobSpec job;                // with the interval's own settings
  std::uint64_t first = 0, last = 0;  // states: from committed step `first` to `last`
  std::uint64_t digest = 0;           // state `last`'s; 0 = not recorded
  std::uint64_t first_weights = 0;    // the sum in its lineage's first view
};

// From the run's beginning to the newest state that the record has a digest of. Pure. An error names what is missing.
Result<std::vector<Leg>> legs_of(const RunRecord& record, std::vector<ViewInterval> past);

struct RecordedRun {
  RunRecord record;
  schema::JobSpec job;               // its last interval's
  std::vector<std::string> names;    // by seat in the run
  std::vector<std::string> trained;  // all members' of all views
  std::vector<Leg> legs;
  std::map<std::string, MemberRecord> members;  // by node, as far as they are known
  std::map<std::uint64_t, double> losses;       // by committed steps; NaN = recorded as not finite
};

// Refuses a run that goes on, one without a state, and a file that is not what the record says of it.
Result<RecordedRun> read_recorded_run(const std::string& directory);

}  // namespace tg::daemon

// The recovery points of a run on this disk: its checkpoints and its final state, each read as it was written or not at
// all. The functions only read the disk; the caller makes sure that no thread writes states of that run meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/store/artefacts.h"
#include "daemon/store/run_record.h"
#include "daemon/store/state_facts.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

struct RecoveryPoint {
  schema::StateId id;
  StateFacts facts;
  std::string file;  // the file's name
  bool end = false;  // the final state, not a checkpoint
};
struct RecoveryPoints {
  std::vector<RecoveryPoint> states;  // newest first, each state once
  std::vector<std::string> rejected;  // one line each: "FILE is damaged: ..."
};

// Reads every state file completely to compare its hash: seconds for a large model, so not on the node's thread.
// advance is called after each part; its exceptions pass through. A file is rejected if it is torn, cut short, changed,
// abandoned while it was written, contradicts its name, or belongs to another run, or to a lineage, key or branch that
// the record does not know (run_history.h).
RecoveryPoints recovery_points_in(
    const std::string& directory, const RunRecord& record, const std::function<void()>& advance = [] {});

// The newest recovery point; older ones are not read.
std::optional<RecoveryPoint> newest_recovery_point(const std::string& directory, const RunRecord& record);

// Opens the file of a state, to read its arrays (saved_arrays.h). Checks the header only: recovery_points_in() has
// checked the values. kNotFound if there is none.
Result<StateFile> open_state(const std::string& directory, const schema::StateId& id);

// The steps of the recovery points that files' names and the record suggest, newest first, at most kMaxStates. Cheap.
std::vector<std::uint64_t> recovery_steps(const std::string& directory, const RunRecord& record);

}  // namespace tg::daemon

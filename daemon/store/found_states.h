// The states of a run on this disk: its checkpoints and the state of its end. Each file is read as it was written or
// not at all. The calls read the disk only; the caller sees to it that nobody writes states of that run meanwhile.
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

struct FoundState {
  schema::StateId id;
  StateFacts facts;  // all that it says of itself
  std::string file;  // its name
  bool end = false;  // as opposed to a checkpoint
};
struct FoundStates {
  std::vector<FoundState> states;    // newest first, each state once
  std::vector<std::string> refused;  // "FILE is damaged: ...", a line each
};

// Reads every state file whole, to compare its hash: seconds for a large model, so not on the node's thread. advance:
// called after each part; what it throws passes through. Refused is what is torn, cut short, changed, abandoned while
// it was written, contradicts its name, is of another run, or of a lineage, key or line that the record does not know
// (run_line.h).
FoundStates states_in(
    const std::string& directory, const RunRecord& record, const std::function<void()>& advance = [] {});

// The newest of them; older ones are not read.
std::optional<FoundState> newest_state_in(const std::string& directory, const RunRecord& record);

// The file of that state, to be read (saved_arrays.h). Checks its header, not its values: states_in has. kNotFound if
// there is none.
Result<StateFile> open_state(const std::string& directory, const schema::StateId& id);

// Steps of the states that are probably there, newest first, at most kMaxStates: by names and record, cheap.
std::vector<std::uint64_t> steps_in(const std::string& directory, const RunRecord& record);

}  // namespace tg::daemon

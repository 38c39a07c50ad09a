// What a state file has of a run's state, beside its name. Pure.
#pragma once

#include <map>
#include <string>

#include "daemon/step/state_arrays.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_record.h"

namespace tg::daemon {

// record: with the status of that state.
std::map<std::string, std::string> saved_metadata(const RunRecord& record, const schema::StateId& state,
                                                  const Prepared& prepared);
// Until there is an evaluation there is room for the best model, and none.
StateArrays saved_arrays(StateArrays arrays, const schema::RunStatus& status);

}  // namespace tg::daemon

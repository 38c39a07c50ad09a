// A run's end between its record on this disk and what members tell each other of it. Pure.
#pragma once

#include <string>

#include "daemon/membership/outcome_sync.h"
#include "daemon/store/run_record.h"

namespace tg::daemon {

// Puts the truth into the record, the own row and those of the others. names: of all nodes.
void record_end(RunRecord& record, const RunOutcome& end, const Per<Seat, std::string>& names);

// A recorded run as this node would report it; no other node has been heard in this process.
PastRun past_run(const RunRecord& record, const Per<Seat, std::string>& names, Seat self);

}  // namespace tg::daemon

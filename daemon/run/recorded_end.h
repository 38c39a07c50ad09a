// Converts a run's outcome between its record on this disk and the members' messages. Pure.
#pragma once

#include <string>

#include "daemon/membership/outcome_sync.h"
#include "daemon/store/run_record.h"
#include "schema/options/node_list.h"

namespace tg::daemon {

// Writes the outcome into the record: its status, this node's row and the other members' rows. names: all nodes'.
void record_end(RunRecord& record, const RunOutcome& end, const schema::NodeList& names);

// A recorded run as this node reports it after a restart, when it has heard no other node.
PastRun past_run(const RunRecord& record, const schema::NodeList& names, Seat self);

}  // namespace tg::daemon

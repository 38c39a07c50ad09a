// Merges the statuses that several nodes report into one answer. Pure; any thread.
//
// There is one RunStatus per id, that of the node that knows most: one in a later view; one that continues rather than
// one that has left; among equals the asked node. members[] has each node's own row, except wait_share, which is the
// mean of the others' values; the row of a node that did not answer, or has no copy, stays, and says so. STOPPED and
// COMPLETED are authoritative: a node that reports FAILED has not learned of them. If several report FAILED, the
// earliest `since` is shown with its reason: the first cause. The reason also names members that could not save.
#pragma once

#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::daemon {

// own.nodes has the state of every node as the asked one sees it; a node that answered is alive, and a node that an
// answering node cannot reach is not up. `answers` is in the order of seats.
schema::MeshStatus merge_statuses(schema::MeshStatus own, const std::vector<schema::MeshStatus>& answers);

// Keeps the requested run, or all runs if none is named; an Error if there is no such run, or if there are several.
// Only this function decides which run a prefix selects: `pick` says what tgctl needs the run for.
schema::ReplyBody select_run(schema::MeshStatus merged, const schema::StatusRequest& asked);

// Keeps the runs whose ids begin with `prefix`: a node's part of such an answer.
schema::MeshStatus select_prefix(schema::MeshStatus own, const std::string& prefix);

}  // namespace tg::daemon

// Merges what several nodes say about runs into one answer. Pure; any thread.
//
// One RunStatus per id: of whoever knows most (a later view; who goes on before who has left); of equals the asked
// node's. members[] takes each node's own row, except wait_share, which is the mean of what the others say; the row of
// a node that did not answer stays, without a digest. STOPPED and COMPLETED are facts: a node that still says FAILED
// has not heard of it. If several say FAILED, the earliest `since` is shown with its reason: the first cause. The
// reason also says which member could not save.
#pragma once

#include <string>
#include <vector>

#include "schema/control/control.h"

namespace tg::daemon {

// own.nodes holds the state of every node as the asked one sees it; a node that answered lives, and a node that an
// answering node cannot reach is not up. `answers` is in the order of seats.
schema::MeshStatus merge_statuses(schema::MeshStatus own, const std::vector<schema::MeshStatus>& answers);

// Keeps the run that is asked for, all if none is named; an Error if there is no such run, or several. What a beginning
// means is decided here alone: tgctl says by `pick` what it wants the run for.
schema::ReplyBody select_run(schema::MeshStatus merged, const schema::StatusRequest& asked);

// Keeps the runs whose ids begin with `prefix`: a node's own part of such an answer.
schema::MeshStatus select_prefix(schema::MeshStatus own, const std::string& prefix);

}  // namespace tg::daemon

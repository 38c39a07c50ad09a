// RunOutcome is how a run ended: each member's report, and the outcome that follows. Pure.
//
// COMPLETED and STOPPED are authoritative: a member that has all last reports knows that every member reached that
// state. Otherwise FAILED if a member saw a failure, else INTERRUPTED: members were shut down, evicted, or died with
// all the others. Of several causes the first counts. So all nodes with the same reports resolve the same outcome, in
// whatever order the reports came.
#pragma once

#include <optional>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunOutcome {
  schema::Ended truth;                              // state, reason, since_ms, step, digest; the rest is this member's
  Per<Seat, std::optional<schema::Ended>> members;  // each member's report, if it has come
};

// Whether `a` takes precedence over `b`.
bool overrides(const schema::Ended& a, const schema::Ended& b);
// This node's report must be among them. A FAILED or INTERRUPTED member that learns an authoritative outcome keeps its
// state if it is the same.
RunOutcome resolve_outcome(Per<Seat, std::optional<schema::Ended>> words, Seat self);

}  // namespace tg::daemon

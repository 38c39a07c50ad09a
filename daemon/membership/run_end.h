// How a run ended: what each member said about it, and the truth that follows. Pure.
//
// COMPLETED and STOPPED are facts: a member that has all last reports knows that everybody reached that state. FAILED
// is what is left where nobody knows one, and INTERRUPTED where nobody saw it fail: members were shut down,
// left out, or died with all the others. Of several causes the first is the cause. So everybody who has heard the same
// words tells the same end, in whatever order they came.
#pragma once

#include <optional>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunEnd {
  schema::Ended truth;  // state, reason, since_ms, step, digest; the rest is the own member's
  Per<Seat, std::optional<schema::Ended>> members;  // what each member has; nothing if it has not been heard
};

// Whether `a` is nearer to the truth than `b`.
bool overrides(const schema::Ended& a, const schema::Ended& b);
// Our own word must be among them. A member that ended FAILED or INTERRUPTED and hears of a fact keeps its state if it
// is that one.
RunEnd settled(Per<Seat, std::optional<schema::Ended>> words, Seat self);

}  // namespace tg::daemon

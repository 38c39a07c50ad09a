// How a run ended: what each member said of it, and the truth that follows. Pure.
//
// COMPLETED and STOPPED are facts: a member that has all last reports knows that everybody reached that state. FAILED
// is what is left where nobody knows one; of several causes the first is the cause. So everybody who has heard the same
// words tells the same end, in whatever order they came.
#pragma once

#include <optional>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct RunEnd {
  schema::Ended truth;  // state, reason, since_ms, step, digest; the rest is the own member's
  Per<Seat, std::optional<schema::Ended>> members;  // what each has; nothing: it has not been heard
};

// Whether `a` is nearer to the truth than `b`.
bool overrides(const schema::Ended& a, const schema::Ended& b);
// The own word is there. A member that ended FAILED and hears of a fact keeps what it has of that state, if it is that.
RunEnd settled(Per<Seat, std::optional<schema::Ended>> words, Seat self);

}  // namespace tg::daemon

// What can happen to a run that has begun, in one table: what ends it, what costs a member, what costs nothing. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/base/check.h"
#include "schema/control/status.h"

namespace tg::daemon {

enum class Cause : std::uint8_t {
  kAllReported,     // every member's last report is in
  kStopAsked,       // the union of flags says stop, and every report is in
  kTraining,        // a gradient is not finite, digests differ, members are out of step
  kNobodyFit,       // every member has said why it cannot go on
  kHeardFailure,    // another member has seen such a cause, or tells that the run FAILED for it
  kOwnError,        // this member's engine, memory or data fail
  kLostConnection,  // a link between this member and another one broke; if it is back in time: a change, same members
  kSilence,         // no sign of life, no progress, or a new process: another member's, or our own
  kHeardInterruption,  // another member tells that it has left
  kGoodbye,            // a member is being shut down
  kOwnShutDown,        // we are
  kLeftOut,            // the others go on without us
  kStopWhilePaused,    // a user stops what is here, while too few members are there to go on
  kToldToLeave,        // a user has this node leave the run, and the others go on
  kLostOutsider,       // a node that is no member of the view is lost, or says what it has come to
  kFinishedAndLeft,    // a member whose last report is in is lost, restarted or shut down
  kNewsOfAnotherTime,  // a frame of another view, of another run or of an earlier key of this one
};

enum class Cost : std::uint8_t { kTheRun, kAMember, kNothing };

struct CauseRow {
  Cause cause;
  Cost cost;
  // How the run ends: for all, or, where it costs a member, for that one when it is this node. Nothing: it goes on
  // here.
  std::optional<schema::RunState> end;
};

inline constexpr CauseRow kCauses[] = {
    {Cause::kAllReported, Cost::kTheRun, schema::RunState::kCompleted},
    {Cause::kStopAsked, Cost::kTheRun, schema::RunState::kStopped},
    {Cause::kTraining, Cost::kTheRun, schema::RunState::kFailed},
    {Cause::kNobodyFit, Cost::kTheRun, schema::RunState::kFailed},
    {Cause::kHeardFailure, Cost::kTheRun, schema::RunState::kFailed},
    {Cause::kOwnError, Cost::kAMember, std::nullopt},  // once it is left out
    {Cause::kLostConnection, Cost::kAMember, std::nullopt},
    {Cause::kSilence, Cost::kAMember, std::nullopt},
    {Cause::kHeardInterruption, Cost::kAMember, std::nullopt},
    {Cause::kGoodbye, Cost::kAMember, std::nullopt},
    {Cause::kOwnShutDown, Cost::kAMember, schema::RunState::kInterrupted},
    {Cause::kLeftOut, Cost::kAMember, schema::RunState::kInterrupted},
    {Cause::kStopWhilePaused, Cost::kAMember, schema::RunState::kInterrupted},
    {Cause::kToldToLeave, Cost::kAMember, schema::RunState::kInterrupted},
    {Cause::kLostOutsider, Cost::kNothing, std::nullopt},
    {Cause::kFinishedAndLeft, Cost::kNothing, std::nullopt},
    {Cause::kNewsOfAnotherTime, Cost::kNothing, std::nullopt},
};

constexpr const CauseRow& row_of(Cause cause) {
  const CauseRow& row = kCauses[static_cast<std::size_t>(cause)];
  TG_CHECK(row.cause == cause, static_cast<int>(row.cause));
  return row;
}

}  // namespace tg::daemon

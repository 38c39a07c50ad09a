// What can end a run that has begun, in one table: how it ends today, and what each cause will be once a run carries on
// without a member. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/base/check.h"
#include "schema/control/status.h"

namespace tg::daemon {

enum class Cause : std::uint8_t {
  kAllReported,        // every member's last report is in
  kStopAsked,          // the union of flags says stop, and every report is in
  kTraining,           // a gradient is not finite, digests differ, members are out of step
  kOwnError,           // this member's engine, memory or data fail
  kHeardFailure,       // another member has seen a cause, or tells that the run FAILED for it
  kLostConnection,     // a link between this member and another one broke
  kSilence,            // no sign of life, no progress, or a new process: another member's, or our own
  kHeardInterruption,  // another member has heard a goodbye that we have not heard yet
  kGoodbye,            // a member is being shut down
  kOwnShutDown,        // we are
  kFinishedAndLeft,    // a member whose last report is in is lost, restarted or shut down
  kNewsOfAnotherTime,  // a frame of another view, of another run or of an earlier key of this one
};

enum class Later : std::uint8_t { kEndsTheRun, kCostsAMember, kCostsNothing };

struct CauseRow {
  Cause cause;
  std::optional<schema::RunState> today;  // nothing: the run goes on
  Later later;
};

inline constexpr CauseRow kCauses[] = {
    {Cause::kAllReported, schema::RunState::kCompleted, Later::kEndsTheRun},
    {Cause::kStopAsked, schema::RunState::kStopped, Later::kEndsTheRun},
    {Cause::kTraining, schema::RunState::kFailed, Later::kEndsTheRun},
    {Cause::kOwnError, schema::RunState::kFailed, Later::kCostsAMember},
    {Cause::kHeardFailure, schema::RunState::kFailed, Later::kEndsTheRun},  // then it is only said of such causes
    {Cause::kLostConnection, schema::RunState::kFailed, Later::kCostsAMember},
    {Cause::kSilence, schema::RunState::kFailed, Later::kCostsAMember},
    {Cause::kHeardInterruption, schema::RunState::kInterrupted, Later::kCostsAMember},
    {Cause::kGoodbye, schema::RunState::kInterrupted, Later::kCostsAMember},
    {Cause::kOwnShutDown, schema::RunState::kInterrupted, Later::kCostsAMember},
    {Cause::kFinishedAndLeft, std::nullopt, Later::kCostsNothing},
    {Cause::kNewsOfAnotherTime, std::nullopt, Later::kCostsNothing},
};

constexpr const CauseRow& row_of(Cause cause) {
  const CauseRow& row = kCauses[static_cast<std::size_t>(cause)];
  TG_CHECK(row.cause == cause, static_cast<int>(row.cause));
  return row;
}

}  // namespace tg::daemon

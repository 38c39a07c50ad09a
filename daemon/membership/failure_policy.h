// The failure policy: one table of what can happen to an active run, and of the effect: it ends the run, evicts a
// member, or is ignored. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/base/check.h"
#include "schema/control/status.h"

namespace tg::daemon {

enum class FailureCause : std::uint8_t {
  kAllReported,         // every member's last report is in
  kStopRequested,       // the union of flags says stop, and every report is in
  kTrainingFailure,     // a gradient is not finite, digests differ, or members are out of step
  kNoEligibleMember,    // every member is ineligible
  kPeerFailure,         // another member reports such a cause, or that the run FAILED for it
  kLocalError,          // this member's engine, memory or data fail
  kConnectionLost,      // a member's link broke; if it is back in time the next view has the same members
  kPeerTimeout,         // no sign of life, no progress, or a new process; of any member, this one included
  kPeerInterrupted,     // another member has left
  kPeerShutdown,        // a member is being shut down
  kLocalShutdown,       // this node is
  kEvicted,             // the others decided on a view without this node
  kStopWhilePaused,     // a user stops the run here while it is PAUSED
  kLeaveRequested,      // a user has this node leave the run
  kNonMemberLost,       // a node outside the view is lost, or reports its end
  kFinishedMemberLost,  // a member whose last report is in is lost, restarted or shut down
  kStaleFrame,          // a frame of another view, another run, or an earlier run key
};

enum class Effect : std::uint8_t { kEndRun, kEvictMember, kIgnore };

struct FailurePolicy {
  FailureCause cause;
  Effect effect;
  // The run's end: for all, or for this node when it is the evicted member. Nothing: it goes on here.
  std::optional<schema::RunState> end;
};

inline constexpr FailurePolicy kFailurePolicies[] = {
    {FailureCause::kAllReported, Effect::kEndRun, schema::RunState::kCompleted},
    {FailureCause::kStopRequested, Effect::kEndRun, schema::RunState::kStopped},
    {FailureCause::kTrainingFailure, Effect::kEndRun, schema::RunState::kFailed},
    {FailureCause::kNoEligibleMember, Effect::kEndRun, schema::RunState::kFailed},
    {FailureCause::kPeerFailure, Effect::kEndRun, schema::RunState::kFailed},
    {FailureCause::kLocalError, Effect::kEvictMember, std::nullopt},  // until it is evicted
    {FailureCause::kConnectionLost, Effect::kEvictMember, std::nullopt},
    {FailureCause::kPeerTimeout, Effect::kEvictMember, std::nullopt},
    {FailureCause::kPeerInterrupted, Effect::kEvictMember, std::nullopt},
    {FailureCause::kPeerShutdown, Effect::kEvictMember, std::nullopt},
    {FailureCause::kLocalShutdown, Effect::kEvictMember, schema::RunState::kInterrupted},
    {FailureCause::kEvicted, Effect::kEvictMember, schema::RunState::kInterrupted},
    {FailureCause::kStopWhilePaused, Effect::kEvictMember, schema::RunState::kInterrupted},
    {FailureCause::kLeaveRequested, Effect::kEvictMember, schema::RunState::kInterrupted},
    {FailureCause::kNonMemberLost, Effect::kIgnore, std::nullopt},
    {FailureCause::kFinishedMemberLost, Effect::kIgnore, std::nullopt},
    {FailureCause::kStaleFrame, Effect::kIgnore, std::nullopt},
};

constexpr const FailurePolicy& policy_for(FailureCause cause) {
  const FailurePolicy& row = kFailurePolicies[static_cast<std::size_t>(cause)];
  TG_CHECK(row.cause == cause, static_cast<int>(row.cause));
  return row;
}

}  // namespace tg::daemon

// Resumes an ended run from this node's record and disk: it turns a client's request into a proposal, finds the states
// that are intact, and hands the chosen one to the run. Membership decides which nodes take part and which state is
// chosen. Node's thread; the disk is read on the saver's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/run_identity.h"
#include "daemon/node/event_queue.h"
#include "daemon/run/preparation_options.h"
#include "daemon/run/run_context.h"
#include "daemon/store/recovery_points.h"
#include "schema/control/control.h"

namespace tg::daemon {

class Resumption {
 public:
  Resumption(const RunContext& context, EventQueue& queue) : context_(context), queue_(queue) {}

  // Returns the run to propose under this key for a client's request, or why it cannot be resumed.
  Result<RunIdentity> proposal_for(const schema::ResumeRequest& request, std::uint64_t key) const;
  // The same for a run and a job; the proposal has the next lineage.
  Result<RunIdentity> identity_of(const RunRecord& record, const schema::JobSpec& job, std::uint64_t key) const;

  // --- as a member ---
  // Looks for the run's states on the saver's thread; StatesFound follows.
  void find_states(const RunIdentity& run);
  schema::Offer make_offer(StatesFound event);
  std::uint32_t known_lineage(const std::string& run) const;  // 0 = no record
  // Returns the chosen state, with everything in its record on which the bits depend.
  Result<SavedStart> saved_start(const RunIdentity& run) const;

 private:
  std::string refusal_reason(const RunIdentity& run, const std::optional<RunRecord>& record) const;

  const RunContext& context_;
  EventQueue& queue_;
  std::vector<RecoveryPoint> found_;  // by the last find_states()
};

}  // namespace tg::daemon

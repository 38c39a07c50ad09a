// Going on with a run that has ended, as this node's record and disk see it: what a client asks for becomes a run to be
// proposed, the states that are whole are found, and the chosen one is handed to the run. Who takes part, and which
// state is chosen, Membership decides. Node's thread; the disk is read on the saver's.
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

  // The run that the client wants to go on, to be proposed under this key; or why it cannot.
  Result<RunIdentity> asked(const schema::ResumeRequest& request, std::uint64_t key) const;
  // This run with this job, to be proposed under this key with the lineage that follows; or why it cannot go on.
  Result<RunIdentity> identity_of(const RunRecord& record, const schema::JobSpec& job, std::uint64_t key) const;

  // --- as a member ---
  // Looks for this run's states, on the saver's thread: StatesFound follows.
  void find(const RunIdentity& run);
  schema::Offer offer(StatesFound event);
  std::uint32_t known_lineage(const std::string& run) const;  // 0: no record
  // The state that was chosen, with what its record says that the bits depend on.
  Result<SavedStart> start_of(const RunIdentity& run) const;

 private:
  std::string why_none(const RunIdentity& run, const std::optional<RunRecord>& record) const;

  const RunContext& context_;
  EventQueue& queue_;
  std::vector<RecoveryPoint> found_;  // of the run that was asked for last
};

}  // namespace tg::daemon

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
#include "daemon/store/found_states.h"
#include "schema/control/control.h"

namespace tg::daemon {

class Resumption {
 public:
  Resumption(const RunContext& context, EventQueue& queue) : context_(context), queue_(queue) {}

  // The run that the client wants to go on, to be proposed under this key; or why it cannot.
  Result<RunIdentity> asked(const schema::ResumeRequest& request, std::uint64_t key) const;
  // The run that was interrupted last, if it is the newest and the nodes go on with it by themselves: its
  // job says so, and nobody left it here by order.
  std::optional<RunRecord> interrupted() const;
  static bool joins(const RunRecord& record);  // who lacks its state can be given it
  // That run, once those nodes are there that it waits for. After a try that came to nothing the next one is later,
  // doubling up to kLatestTryMs. Where it began kMostTries times at one state and came to no other, it is not to begin
  // there again.
  std::optional<RunIdentity> due(std::uint64_t now_ms, std::uint64_t key);

  // --- as a member ---
  // Looks for this run's states, on the saver's thread: StatesFound follows.
  void find(const RunIdentity& run);
  schema::Offer offer(StatesFound event);
  std::uint32_t known_lineage(const std::string& run) const;  // 0: no record
  // The state that was chosen, with what its record says that the bits depend on.
  Result<SavedStart> start_of(const RunIdentity& run) const;

 private:
  static constexpr std::uint64_t kFirstTryMs = 5'000, kLatestTryMs = 600'000;
  static constexpr std::size_t kMostTries = 3;
  Result<RunIdentity> identity_of(const RunRecord& record, const schema::JobSpec& job, std::uint64_t key) const;
  std::string why_none(const RunIdentity& run, const std::optional<RunRecord>& record) const;

  const RunContext& context_;
  EventQueue& queue_;
  std::vector<FoundState> found_;  // of the run that was asked for last
  std::string tried_;              // of due()
  std::uint64_t next_try_ms_ = 0, pause_ms_ = kFirstTryMs;
};

}  // namespace tg::daemon

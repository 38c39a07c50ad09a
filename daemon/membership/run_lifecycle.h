// RunLifecycle is the run that is active on this node, from its beginning to the outcome that all members share. Pure;
// part of Membership, which brings it the causes that end a run (failure_policy.h) and gives those that evict a member
// to the view change (view_change.h).
//
//   running -> stopping -> saving (SaveRun ... saved) -> outcome (EndRun)
//
// A member that sees what no machine's return can mend (a gradient that is not finite, digests that differ) sends Fail
// to all: the run is FAILED, by the first cause. A member with all last reports knows that the run is COMPLETED or
// STOPPED: an authoritative outcome. A member that is shut down, evicted, or stopped while PAUSED is INTERRUPTED, for
// itself alone.
//
// Once its state is saved, or cannot be, a member sends all others its outcome and what it has saved (Ended). With that
// of every reachable member of the view the outcome is resolved (run_outcome.h) and recorded, not before. What is heard
// later, or by a member that was away, corrects the records (outcome_sync.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/failure_policy.h"
#include "daemon/membership/peers.h"

namespace tg::daemon {

class RunLifecycle {
 public:
  struct Timeouts {
    // The wait after this node's save: for a member that caused the end; for any member during a shutdown.
    std::uint64_t blamed_ms, leaving_ms;
  };
  RunLifecycle(const Peers& peers, Outbox& out, const Timeouts& timeouts)
      : peers_(peers), out_(out), timeouts_(timeouts), outcome_sync_(peers.self()) {}

  // --- the run ---
  void begin(RunIdentity run, View view, Seat proposer, ExchangeChoice choice);  // all have committed
  // With this view this node is a member of a run that was active elsewhere.
  void join(RunIdentity run, const schema::NextView& view, Seat donor, const schema::Commit& choice);
  bool is_active() const { return phase_ != Phase::kNone; }  // until the outcome
  bool is_run(std::uint64_t run_key) const { return is_active() && run_.run_key == run_key; }
  bool is_running() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  // The run ended for this node alone, which is still a voter.
  bool has_left() const { return !is_running() && end_state_ == schema::RunState::kInterrupted; }
  const RunIdentity& run() const { return run_; }
  const schema::Commit& choice() const { return choice_; }  // at the beginning
  const View& view() const { return view_; }
  Seat proposer() const { return proposer_; }
  schema::RunState state() const;  // while active
  // The peer's last report is not in.
  bool is_needed(Seat peer) const { return is_running() && view_.has(peer) && !finished_[peer]; }

  // --- events; those that come too late change nothing ---
  void stop();
  void on_stopping();
  void on_peer_finished(Seat peer);
  void on_view_installed(View view);                        // the run goes on in it
  void fail(FailureCause cause, const schema::Fail& what);  // tells the others
  // This node shuts down: tells the others, which may still decide on a view without it.
  void say_goodbye();
  void interrupt(FailureCause cause, const std::string& reason);  // for this node alone
  void finish(schema::RunState state, const std::string& reason);
  void on_connected(Seat peer);
  void on_peer_lost(Seat peer, std::uint64_t now_ms);
  void on_saved(std::uint64_t run_key, const schema::Ended& own, std::uint64_t now_ms);
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);
  void on_fail(Seat from, const schema::Fail& cause);
  void on_ended(Seat from, std::uint64_t run_key, const schema::Ended& ended, std::uint64_t now_ms);
  // A peer continues a run that has ended here.
  void on_late_frame(Seat from, std::uint64_t run_key);

  OutcomeSync& outcome_sync() { return outcome_sync_; }

 private:
  enum class Phase : std::uint8_t { kNone, kRunning, kStopping, kSaving };

  void send(std::vector<Seat> to, schema::FrameBody body) {
    out_.send(std::move(to), run_.run_key, view_.number(), std::move(body));
  }
  void enter(RunIdentity run, View view, Seat proposer, const schema::Commit& choice);
  void begin_saving(schema::RunState state, const std::string& reason, const std::string& blamed = "");
  void try_to_conclude(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const Timeouts timeouts_;
  bool shut_down_ = false;

  // The run; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  RunIdentity run_;
  schema::Commit choice_;
  View view_;
  Seat proposer_;
  bool stop_asked_ = false;
  Per<Seat, bool> finished_;
  // While it saves.
  bool by_user_ = false;
  schema::RunState end_state_ = schema::RunState::kFailed;
  bool was_stopping_ = false;
  Per<Seat, std::optional<schema::Ended>> end_reports_;
  Per<Seat, bool> unreachable_;  // not waited for
  std::string blamed_;           // the node that caused the end, or ""
  std::uint64_t saved_ms_ = 0;

  OutcomeSync outcome_sync_;
};

}  // namespace tg::daemon

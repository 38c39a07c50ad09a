// A run that has begun, and its end: the causes that end it (causes.h), the one verdict that all members share, and
// what is heard of it afterwards. Pure; part of Membership, which says whose events are whose and brings what costs a
// member to the view change (view_change.h).
//
//   running -> stopping -> saving (SaveRun ... saved) -> verdict (EndRun)
//
// A member that sees what no machine's return can mend (a gradient that is not finite, digests that differ) sends Fail
// to all; the first cause seen wins, later ones change nothing: FAILED. A member with all last reports knows that the
// run is COMPLETED or STOPPED: a fact that all can learn. A member without which the run goes on, for it was shut down,
// left out, or stopped while too few were there, is INTERRUPTED: for itself alone.
//
// When its state is saved, or cannot be, a member tells all how the run ended for it and what it has (Ended). With the
// word of every member of the view that is not lost, the truth is settled (run_end.h) and recorded; no end is announced
// before. What is heard later, or by a member that was away, corrects the records (aftermath.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/causes.h"
#include "daemon/membership/peers.h"

namespace tg::daemon {

class End {
 public:
  struct Timeouts {
    // After our own save: the wait for a member that caused the end, or for any member while this node shuts down.
    std::uint64_t blamed_ms, leaving_ms;
  };
  End(const Peers& peers, Outbox& out, const Timeouts& timeouts)
      : peers_(peers), out_(out), timeouts_(timeouts), aftermath_(peers.self()) {}

  // --- the run ---
  void begin(RunIdentity run, View view, Seat proposer, Choice choice);  // all committed
  // A run that was on without this node: with this view it is a member.
  void join(RunIdentity run, const schema::NextView& view, Seat host, const schema::Commit& choice);
  bool active() const { return phase_ != Phase::kNone; }  // until the verdict
  bool is(std::uint64_t key) const { return active() && run_.key == key; }
  bool runs() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  // It is over for this node alone: in the view change it is still a voter.
  bool left() const { return !runs() && ended_as_ == schema::RunState::kInterrupted; }
  const RunIdentity& run() const { return run_; }
  const schema::Commit& choice() const { return choice_; }  // as it began with
  const View& view() const { return view_; }
  Seat proposer() const { return proposer_; }
  schema::RunState state() const;  // while active
  // Losing it costs something: its last report is not in.
  bool needs(Seat peer) const { return runs() && view_.has(peer) && !finished_[peer]; }

  // --- events; those that come too late change nothing ---
  void stop();
  void stopping();
  void peer_finished(Seat peer);
  void install(View view);                             // the run goes on in it
  void failed(Cause cause, const schema::Fail& what);  // and tells the others
  // This node is shut down: the others hear of it, and may still decide to go on without it.
  void leaves();
  void interrupted(Cause cause, const std::string& reason);  // for this node
  void finished(schema::RunState state, const std::string& reason);
  void connected(Seat peer);
  void lost(Seat peer, std::uint64_t now_ms);
  void saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms);
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);
  void on_fail(Seat from, const schema::Fail& cause);
  void on_ended(Seat from, std::uint64_t key, const schema::Ended& ended, std::uint64_t now_ms);
  // Somebody goes on with a run that has ended here.
  void asked(Seat from, std::uint64_t key);

  Aftermath& aftermath() { return aftermath_; }

 private:
  enum class Phase : std::uint8_t { kNone, kRunning, kStopping, kSaving };

  void send(std::vector<Seat> to, schema::FrameBody body) {
    out_.send(std::move(to), run_.key, view_.number(), std::move(body));
  }
  void enter(RunIdentity run, View view, Seat proposer, const schema::Commit& choice);
  void end(schema::RunState state, const std::string& reason, const std::string& blamed = "");
  void settle(std::uint64_t now_ms);

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
  bool by_order_ = false;
  schema::RunState ended_as_ = schema::RunState::kFailed;
  bool was_stopping_ = false;
  Per<Seat, std::optional<schema::Ended>> ends_;
  Per<Seat, bool> gone_;  // nobody waits for their word
  std::string blamed_;    // the name of who is to blame, if anybody is
  std::uint64_t saved_ms_ = 0;

  Aftermath aftermath_;
};

}  // namespace tg::daemon

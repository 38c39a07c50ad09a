// A run that has begun, and its end: the causes that end it (causes.h), the one verdict that all members share, and
// what is heard of it afterwards. Pure; part of Membership, which says whose events are whose.
//
//   running -> stopping -> saving (SaveRun ... saved) -> verdict (EndRun)
//
// Any member that sees a cause (a lost peer, a non-finite gradient, an error of its own) sends Fail to all; the first
// cause seen wins, later ones change nothing: FAILED. A member that is shut down says Goodbye, and the run is
// INTERRUPTED for all. A member with all last reports knows that the run is COMPLETED or STOPPED: a fact that all can
// learn.
//
// When its state is saved, or cannot be, a member tells all how the run ended for it and what it has (Ended). With the
// word of every member that is not lost, the truth is settled (run_end.h) and recorded; no end is announced before.
// What is heard later, or by a member that was away, corrects the records (aftermath.h).
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
  bool active() const { return phase_ != Phase::kNone; }                 // until the verdict
  bool is(std::uint64_t key) const { return active() && run_.key == key; }
  const RunIdentity& run() const { return run_; }
  const View& view() const { return view_; }
  Seat proposer() const { return proposer_; }
  schema::RunState state() const;  // while active

  // --- events; those that come too late change nothing ---
  void stop();
  void stopping();
  void peer_finished(Seat peer);
  void lost(Seat peer, Cause cause, const std::string& message, std::uint64_t now_ms);
  void failed(const schema::Fail& cause);
  void finished(schema::RunState state, const std::string& reason);
  void saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms);
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);
  void on_fail(const schema::Fail& cause);
  void on_goodbye(Seat from);
  void on_ended(Seat from, std::uint64_t key, const schema::Ended& ended, std::uint64_t now_ms);

  Aftermath& aftermath() { return aftermath_; }

 private:
  enum class Phase : std::uint8_t { kNone, kRunning, kStopping, kSaving };

  bool runs() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  void send(std::vector<Seat> to, schema::FrameBody body) {
    out_.send(std::move(to), run_.key, view_.number(), std::move(body));
  }
  void end(schema::RunState state, const std::string& reason, const std::string& blamed = "");
  void end(Cause cause, const std::string& reason, const std::string& blamed = "") {
    end(row_of(cause).today.value(), reason, blamed);
  }
  void fail(Cause cause, const schema::Fail& what);  // and tells the others
  void settle(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const Timeouts timeouts_;
  bool shut_down_ = false;

  // The run; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  RunIdentity run_;
  View view_;
  Seat proposer_;
  bool stop_asked_ = false;
  Per<Seat, bool> finished_;
  // While it saves.
  bool was_stopping_ = false;
  Per<Seat, std::optional<schema::Ended>> ends_;
  Per<Seat, bool> gone_;  // nobody waits for their word
  std::string blamed_;    // the name of who is to blame, if anybody is
  std::uint64_t saved_ms_ = 0;

  Aftermath aftermath_;
};

}  // namespace tg::daemon

// Joiner is the joining node's side of a join (admission.h is the senior's). Pure; part of Membership.
//
//   asking -> invited: preparing -> ready, asking again -> receiving -> has the snapshot: SnapshotDone -> the next view
//
// It learns of the run from the others' heartbeats and asks all of them; the senior answers. What it has prepared is
// kept while it waits for its turn, across view changes too; no member waits for it meanwhile. It has no vote before
// the view that takes it in is decided; if that comes too late it asks again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/membership/actions.h"
#include "daemon/membership/peers.h"

namespace tg::daemon {

class Joiner {
 public:
  static constexpr std::uint64_t kRepeatMs = 2'000;     // between requests
  static constexpr std::uint64_t kRefusedMs = 3'000;    // after a refusal
  static constexpr std::uint64_t kFailedMs = 60'000;    // after this node failed
  static constexpr std::uint64_t kDecisionMs = 20'000;  // for the view with this node
  static constexpr std::uint64_t kSilenceMs = 5'000;    // the donor's, which reports each second
  static constexpr std::uint64_t kOverMs = 5'000;  // without a heartbeat of the run: it has ended, or is out of reach
  Joiner(const Peers& peers, Outbox& out, const VoterId& self) : peers_(peers), out_(out), self_(self) {}

  // --- state ---
  bool has_reserved() const { return phase_ > Phase::kAsking; }  // the run takes memory
  const RunIdentity& run() const { return run_; }                // while reserved
  bool is(std::uint64_t run_key) const { return has_reserved() && run_.run_key == run_key; }
  bool has_snapshot() const { return phase_ == Phase::kHasSnapshot; }
  const schema::NextView& view() const { return view_; }  // the last Invite's
  const schema::Commit& choice() const { return choice_; }
  const schema::StateId& state() const { return state_; }  // the snapshot's
  Seat donor() const { return donor_; }

  // --- events ---
  void on_run_discovered(const std::string& run_id, std::uint64_t now_ms);  // this node is idle
  void on_invite(Seat from, std::uint64_t run_key, const schema::Invite& invite, std::uint64_t now_ms);
  void on_quiesce(Seat from, std::uint64_t run_key, const schema::Quiesce& quiesce, std::uint64_t now_ms);
  void on_snapshot_offer(Seat from, std::uint64_t run_key, std::uint32_t view, const schema::SnapshotOffer& offer,
                         std::uint64_t now_ms);
  void on_prepared(std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms);
  // Answers ReceiveSnapshot: the state is whole, its digest right. True: this node can become a member.
  bool on_snapshot_done(std::uint64_t run_key, std::uint64_t now_ms);
  void on_failed(std::uint64_t run_key, const std::string& why, std::uint64_t now_ms);
  void retry(std::uint64_t now_ms);  // what is prepared stays
  void on_joined() { phase_ = Phase::kNone; }
  void drop();  // what is prepared as well
  void tick(std::uint64_t now_ms);
  bool is_decision_late(std::uint64_t now_ms) const { return has_snapshot() && now_ms >= snapshot_ms_ + kDecisionMs; }

 private:
  enum class Phase : std::uint8_t { kNone, kAsking, kPreparing, kReady, kReceiving, kHasSnapshot };

  void send_join(std::uint64_t now_ms);
  void send_done(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const VoterId self_;

  Phase phase_ = Phase::kNone;
  std::string run_id_;
  RunIdentity run_;        // once invited
  schema::NextView view_;  // once invited
  schema::Commit choice_;
  Seat donor_;         // the senior that invited this node
  schema::Vote vote_;  // once prepared
  schema::StateId state_;
  std::uint64_t seen_ms_ = 0, next_request_ms_ = 0, heard_ms_ = 0, snapshot_ms_ = 0;
};

}  // namespace tg::daemon

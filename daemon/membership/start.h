// Start is a run's two-phase commit, new or resumed: from a client's start to the commit. Pure; part of Membership. A
// run that has begun is handed over to RunLifecycle.
//
// The asked node is the proposer. It waits (pending_start.h) until all participants are connected, then claims the
// right to propose (proposal_right.h): of two starts in the same second one proceeds, and the other is refused with the
// winner's id. With the grant it proposes to all; every member prepares (loads data, builds the model, hashes) and
// votes; the proposer compares the hashes (votes.h) and commits, or fails the proposal with one message for all. A
// member that loses its proposer drops the reservation. Preparing may take as long as it makes progress.
//
//   proposer:  idle -> pending -> [finding: all offers] -> proposing: all votes -> running
//   member:    idle -> [offering] -> preparing -> voted -> running
//
// A resume is proposed twice under one run key: first without a state, when every node offers the whole states on its
// disk; the proposer chooses one (choose_state.h) and proposes it, naming the members that have it unless all do. The
// others drop the proposal; a proposer without the state still collects the votes and commits. A node that knows a
// later lineage than the proposer votes no. A failed resume changes nothing.
//
// A vote names its process and state directory, and the commit names those of all members of the first view. The
// proposal carries the weights of all nodes, of a new run as the proposer knows them: every member prepares for its
// share by that list. The commit's weights are the ones that count: the same, or for `split = speed` those that follow
// from the votes (split_by_speed.h).
//
// Until the commit only the proposer decides: a member that has voted and then sees a failure withdraws its vote and
// awaits the verdict; if the commit had already left, the run begins and the failure goes to the failure policy. A node
// that receives a commit which it no longer awaits answers with Fail. The proposer repeats its proposal every
// kProposeAgainMs until it decides: one that is stuck holds its members for proposer_timeout_ms at most. A node takes
// another cluster key only while it has nothing prepared: that costs its links, and the proposer proposes anew once
// they are back. A member that is asked to stop awaits the verdict for claim_timeout_ms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/offers.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/pending_start.h"
#include "daemon/membership/proposal_right.h"
#include "daemon/membership/run_lifecycle.h"
#include "daemon/membership/votes.h"

namespace tg::daemon {

class Start {
 public:
  struct Timeouts {
    std::uint64_t claim_ms, prepare_ms, proposer_ms;
  };
  Start(const Peers& peers, Outbox& out, RunLifecycle& lifecycle, const Timeouts& timeouts, const VoterId& self)
      : timeouts_(timeouts),
        self_(self),
        peers_(peers),
        out_(out),
        lifecycle_(lifecycle),
        right_(timeouts.claim_ms),
        offers_(peers.names()),
        votes_(peers.names()) {}

  // --- the run: pending, or one that this node is reserved for ---
  const RunIdentity* current() const;  // null: neither
  bool is(std::uint64_t run_key) const { return current() != nullptr && current()->run_key == run_key; }
  schema::RunState state() const { return pending_ ? schema::RunState::kPending : schema::RunState::kStarting; }
  std::vector<Seat> waited_for() const {
    return pending_ && !pending_->claiming() ? pending_->disconnected(peers_) : std::vector<Seat>{};
  }

  // A failure that a member has seen between its vote and the beginning.
  std::optional<schema::Fail> take_early_failure() { return std::exchange(early_failure_, std::nullopt); }

  // --- events; those that come too late change nothing ---
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  void on_connected(std::uint64_t now_ms);  // one more peer is
  void on_disconnected(Seat peer);
  void on_rekey(Seat peer, std::uint64_t now_ms);  // disconnected because one of the two gets another cluster key
  void on_incompatible_peer(Seat peer, const std::string& why, std::uint64_t now_ms);
  void on_peer_lost(Seat peer, const std::string& message);
  void on_own_offer(std::uint64_t run_key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms);
  void on_prepared(std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms,
                   const engine::EachName& names);
  void on_prepare_progress(Seat seat, std::uint64_t now_ms);
  void stop(std::uint64_t now_ms);
  void on_failed(const schema::Fail& cause);
  void shut_down();
  void tick(std::uint64_t now_ms);
  void on_claim(Seat from, std::uint64_t run_key, const schema::Claim& claim, std::uint64_t now_ms);
  void on_grant(Seat from, std::uint64_t run_key, const schema::Grant& grant, std::uint64_t now_ms);
  void on_propose(Seat from, std::uint64_t run_key, const schema::Propose& proposal, std::uint64_t now_ms);
  void on_offer(Seat from, std::uint64_t run_key, const schema::Offer& offer, std::uint64_t now_ms);
  void on_vote(Seat from, std::uint64_t run_key, const schema::Vote& vote);
  void on_commit(Seat from, std::uint64_t run_key, const schema::Commit& commit);
  void on_fail(Seat from, std::uint64_t run_key, const schema::Fail& cause);
  void on_goodbye(Seat from, std::uint64_t run_key);

 private:
  static constexpr std::uint64_t kProposeAgainMs = 5'000;
  enum class Phase : std::uint8_t { kNone, kFinding, kProposing, kOffering, kPreparing, kVoted };

  bool is_proposer() const { return phase_ == Phase::kFinding || phase_ == Phase::kProposing; }
  bool is_participant() const { return phase_ != Phase::kNone && !is_proposer(); }  // in another node's proposal
  const std::string& name(Seat seat) const { return peers_.name(seat); }
  const std::string& own_name() const { return peers_.own_name(); }
  std::string busy_reason() const;
  void send(std::vector<Seat> to, std::uint64_t run_key, schema::FrameBody body) {
    out_.send(std::move(to), run_key, View::kFirst, std::move(body));
  }
  void set_members(const std::vector<Seat>& members);
  bool is_member(Seat seat) const { return view_.has(seat); }
  void reserve(Phase phase, RunIdentity run, Seat proposer, std::uint64_t deadline_ms);
  void drop();
  void find_or_prepare();
  Status give_seats();
  void hand_over(ExchangeChoice choice);
  bool matches_members(const schema::Commit& commit) const;
  void on_peer_failed(Seat from, const schema::Fail& cause);

  // a pending start
  void try_to_claim(std::uint64_t now_ms);
  void propose(std::uint64_t now_ms);
  PendingStart take_pending() { return *std::exchange(pending_, std::nullopt); }
  void give_grant_back(Seat granter, std::uint64_t run_key);
  void refuse_pending(const PendingStart& start, const std::string& message);
  void end_pending(schema::RunState state, ErrorKind kind, const std::string& reason);
  // proposer
  void send_proposal(std::uint64_t now_ms);
  void add_offer(Seat from, schema::Offer offer, std::uint64_t now_ms);
  void add_vote(Seat from, const schema::Vote& vote);
  void fail_proposal(const schema::Fail& cause);
  void propose_anew(const schema::Fail& cause, std::uint64_t now_ms);
  void commit();
  std::vector<Seat> missing() const;             // seats whose offer or vote is missing
  std::vector<Seat> other_participants() const;  // seats that are asked
  // member
  std::string refusal_reason(Seat from, const schema::Propose& proposal, const std::vector<std::string>& asked) const;
  void on_repeated_proposal(const schema::Propose& proposal, std::uint64_t now_ms);
  void try_to_vote(std::uint64_t now_ms);
  void withdraw_vote(schema::Fail cause);

  const Timeouts timeouts_;
  const VoterId self_;
  const Peers& peers_;
  Outbox& out_;
  RunLifecycle& lifecycle_;
  ProposalRight right_;  // granted by this node
  bool shut_down_ = false;

  std::optional<PendingStart> pending_;  // only without a phase

  // The run that this node is reserved for; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  RunIdentity run_;
  std::vector<Seat> participants_;
  View view_;
  Seat proposer_;
  std::uint64_t deadline_ms_ = 0;              // the phase's
  std::uint64_t proposed_ms_ = 0;              // the proposal was last sent, or received
  std::uint64_t token_ = 0;                    // proposer: the client that awaits an answer
  std::uint64_t give_up_ms_ = 0;               // proposer: the start-timeout
  Offers offers_;                              // a proposer's: all; a member's: its own
  Votes votes_;                                // a proposer's
  std::optional<schema::Vote> own_vote_;       // a member's, kept until it is connected to all
  std::optional<schema::Fail> early_failure_;  // seen by a member before the commit
  bool stop_asked_ = false;
};

}  // namespace tg::daemon

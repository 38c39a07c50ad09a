// The way of a run to its beginning, new or resumed: from a client's start to the commit. Pure; part of Membership,
// which says whose events are whose. What has begun is handed over to End.
//
// The asked node is the proposer. It waits (pending_start.h) until all who are to take part are connected, then claims
// the right to propose (proposal_right.h): of two starts in the same second exactly one proceeds and the other is
// refused with the winner's id. With the grant it proposes to all; every member prepares (loads data, builds the model,
// hashes) and votes; the proposer compares the hashes (votes.h) and commits, or fails the proposal with one message for
// all. A member that lost its proposer drops the reservation. Preparing may take as long as it gets on.
//
//   proposer:  idle -> pending -> [finding: own offer and theirs] -> proposing: own vote and theirs -> running
//   member:    idle -> [offering] -> preparing -> voted -> running
//
// A run that is to go on is proposed twice, with one key: first without a state to begin at. Then every node looks
// for those that are whole on its disk and offers them; the proposer chooses (choose_state.h) and proposes that one,
// and names the members that have it, where these are not all. The others drop the proposal, the proposer among them if
// it is one: it still collects their votes, and commits.
// Whoever has begun the run under a later key than the proposer knows votes no. A resume that comes to nothing changes
// nothing.
//
// A vote says which process of which state directory it is of, and the commit names them all: the members of the first
// view. The proposal carries the weights of all nodes, of a new run as the proposer knows them: every member prepares
// for its share by that list. The commit's members have the weights that count: the same ones, or, where a new run's
// job splits the batch by speed, what comes of the votes (split_by_speed.h).
//
// Until the commit only the proposer decides: a member that has voted and then sees trouble takes its vote back and
// waits for the verdict; if the commit had already left, the run begins there as well, and what was seen costs a
// member, or ends the run (causes.h). A commit that reaches a node which no longer waits for it is answered with Fail.
// A proposer proposes again every kProposeAgainMs until it decides: one that beats on, but is stuck, holds its members
// for proposer_timeout_ms at most. A node binds its port with another cluster key only while it has nothing prepared:
// that costs its links, and the proposer proposes anew once they are back. A member that was asked to stop waits
// claim_timeout_ms for the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/end.h"
#include "daemon/membership/offers.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/pending_start.h"
#include "daemon/membership/proposal_right.h"
#include "daemon/membership/votes.h"

namespace tg::daemon {

class Start {
 public:
  struct Timeouts {
    std::uint64_t claim_ms, prepare_ms, proposer_ms;
  };
  struct Voter {  // this node, as in schema::ViewMember
    std::uint64_t directory, incarnation;
  };
  Start(const Peers& peers, Outbox& out, End& end, const Timeouts& timeouts, const Voter& self)
      : timeouts_(timeouts),
        self_(self),
        peers_(peers),
        out_(out),
        end_(end),
        right_(timeouts.claim_ms),
        offers_(peers.names()),
        votes_(peers.names()) {}

  // --- the run: pending, or one that this node is reserved for ---
  const RunIdentity* current() const;  // null: neither
  bool is(std::uint64_t key) const { return current() != nullptr && current()->key == key; }
  schema::RunState state() const { return pending_ ? schema::RunState::kPending : schema::RunState::kStarting; }
  std::vector<Seat> waited_for() const {
    return pending_ && !pending_->claiming() ? pending_->disconnected(peers_) : std::vector<Seat>{};
  }

  // What a member has seen between its vote and the beginning.
  std::optional<schema::Fail> take_trouble() { return std::exchange(trouble_, std::nullopt); }

  // --- events; those that come too late change nothing ---
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  void connected(std::uint64_t now_ms);  // to one more peer
  void disconnected(Seat peer);
  void rekeys(Seat peer, std::uint64_t now_ms);  // disconnected, for one of both gets another cluster key
  void cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms);
  void lost(Seat peer, const std::string& message);
  void offered(std::uint64_t key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms);
  void prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms, const engine::EachName& names);
  void prepares(Seat seat, std::uint64_t now_ms);
  void stop(std::uint64_t now_ms);
  void failed(const schema::Fail& cause);
  void shut_down();
  void tick(std::uint64_t now_ms);
  void on_claim(Seat from, std::uint64_t key, const schema::Claim& claim, std::uint64_t now_ms);
  void on_grant(Seat from, std::uint64_t key, const schema::Grant& grant, std::uint64_t now_ms);
  void on_propose(Seat from, std::uint64_t key, const schema::Propose& proposal, std::uint64_t now_ms);
  void on_offer(Seat from, std::uint64_t key, const schema::Offer& offer, std::uint64_t now_ms);
  void on_vote(Seat from, std::uint64_t key, const schema::Vote& vote);
  void on_commit(Seat from, std::uint64_t key, const schema::Commit& commit);
  void on_fail(Seat from, std::uint64_t key, const schema::Fail& cause);
  void on_goodbye(Seat from, std::uint64_t key);

 private:
  static constexpr std::uint64_t kProposeAgainMs = 5'000;
  enum class Phase : std::uint8_t { kNone, kFinding, kProposing, kOffering, kPreparing, kVoted };

  bool proposes() const { return phase_ == Phase::kFinding || phase_ == Phase::kProposing; }
  bool takes_part() const { return phase_ != Phase::kNone && !proposes(); }  // in another node's proposal
  const std::string& name(Seat seat) const { return peers_.name(seat); }
  const std::string& own_name() const { return peers_.own_name(); }
  std::string taken_message() const;
  void send(std::vector<Seat> to, std::uint64_t key, schema::FrameBody body) {
    out_.send(std::move(to), key, View::kFirst, std::move(body));
  }
  void has_members(const std::vector<Seat>& members);
  std::vector<Seat> seats_in(const std::vector<std::uint32_t>& members) const;
  bool is_member(Seat seat) const { return view_.has(seat); }
  void reserve(Phase phase, RunIdentity run, Seat proposer, std::uint64_t deadline_ms);
  void drop();
  void find_or_prepare();
  void hand_over(Choice choice);
  bool names_all(const schema::Commit& commit) const;
  void told(Seat from, const schema::Fail& cause);

  // a pending start
  void try_to_claim(std::uint64_t now_ms);
  void propose(std::uint64_t now_ms);
  PendingStart take_pending() { return *std::exchange(pending_, std::nullopt); }
  void give_grant_back(Seat granter, std::uint64_t key);
  void refuse_pending(const PendingStart& start, const std::string& message);
  void end_pending(schema::RunState state, ErrorKind kind, const std::string& reason);
  // proposer
  void send_proposal(std::uint64_t now_ms);
  void take_offer(Seat from, schema::Offer offer, std::uint64_t now_ms);
  void take_vote(Seat from, const schema::Vote& vote);
  void fail_proposal(const schema::Fail& cause);
  void propose_anew(const schema::Fail& cause, std::uint64_t now_ms);
  void commit();
  std::vector<Seat> missing() const;  // whose offer or vote
  std::vector<Seat> others() const;   // who are asked
  // member
  std::string why_not(Seat from, const schema::Propose& proposal) const;
  void proposed_again(const schema::Propose& proposal, std::uint64_t now_ms);
  void try_to_vote(std::uint64_t now_ms);
  void take_back_vote(schema::Fail cause);

  const Timeouts timeouts_;
  const Voter self_;
  const Peers& peers_;
  Outbox& out_;
  End& end_;
  ProposalRight right_;  // that this node grants
  bool shut_down_ = false;

  std::optional<PendingStart> pending_;  // only while there is no phase

  // The run that this node is reserved for; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  RunIdentity run_;
  std::vector<Seat> asked_;
  View view_;
  Seat proposer_;
  std::uint64_t deadline_ms_ = 0;         // of the phase
  std::uint64_t proposed_ms_ = 0;         // the proposal was sent last, or heard last
  std::uint64_t token_ = 0;               // of a proposer: the client that waits for an answer
  std::uint64_t give_up_ms_ = 0;          // the same: its start-timeout
  Offers offers_;                         // a proposer has all, a member its own
  Votes votes_;                           // of a proposer
  std::optional<schema::Vote> own_vote_;  // a member's, held until it is connected to all
  std::optional<schema::Fail> trouble_;   // seen by a member before the verdict
  bool stop_asked_ = false;
};

}  // namespace tg::daemon

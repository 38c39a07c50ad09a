// Who takes part in a run: the two-phase start, the end of a run, and the one verdict all members share. It knows seats
// only; the members of a run and the number of their list are a View, made when the run is reserved.
//
// Pure: events go in, actions come out; it knows no clock (now_ms is an event's field), socket or thread, so a seeded
// simulator drives it (tests/simulation). Owned by the node's thread.
//
// Start. The asked node is the proposer. It waits (pending_start.h) until every member is connected, then claims the
// right to propose (proposal_right.h): of two starts in the same second exactly one proceeds and the other
// is refused with the winner's id. With the grant it proposes to all; every member prepares (loads data, builds the
// model, hashes) and votes; the proposer compares the hashes (votes.h) and commits, or fails the proposal with one
// message for all. A member that lost its proposer drops the reservation. Preparing may take as long as it gets on.
//
//   proposer:  idle -> pending -> proposing (own vote and theirs) -> running
//   member:    idle -> preparing -> voted -> running
//
// The proposal carries the weights of all nodes as the proposer knows them, so that all members split a batch by one
// list.
//
// Until the commit only the proposer decides: a member that has voted and then sees trouble takes its vote back and
// waits for the verdict; if the commit had already left, the run begins there and fails at once, so that all members
// agree on what happened. A commit that reaches a node which no longer waits for it is answered with Fail. A proposer
// proposes again every kProposeAgainMs until it decides: one that beats on, but is stuck, holds its members for
// proposer_timeout_ms at most. A member that was asked to stop waits claim_timeout_ms for the verdict.
//
// End. Any member that sees a cause (a lost peer, a non-finite gradient, an error of its own) sends Fail to all; the
// first cause seen wins, later ones change nothing. In view 1 there is one transition: FAILED. Carrying on will add
// views here. A member with all last reports knows that the run is COMPLETED or STOPPED: a fact that all can learn.
//
//   running -> saving (SaveRun ... saved) -> verdict (EndRun)
//
// When its state is saved, or cannot be, a member tells all how the run ended for it and what it has (Ended). With the
// word of every member that is not lost, the truth is settled (run_end.h) and recorded; no end is announced before.
// What is heard later, or by a member that was away, corrects the records (aftermath.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/membership/aftermath.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/pending_start.h"
#include "daemon/membership/proposal_right.h"
#include "daemon/membership/run_identity.h"
#include "daemon/membership/view.h"
#include "daemon/membership/votes.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// Actions, to be carried out in order.
struct PrepareRun {  // answer with prepared(); the run's exchange may buffer frames of this view from now on
  RunIdentity run;
  View view;
};
struct BeginRun {  // all committed
  RunIdentity run;
  Choice choice;  // why and the slowest link are known to the proposer only
};
struct DropRun {  // a reservation came to nothing, or a PENDING run was refused: nothing is recorded
  std::uint64_t key = 0;
};
struct SaveRun {  // the run is over: save the committed state and answer with saved()
  std::uint64_t key = 0;
  std::string id;
  schema::RunState state = schema::RunState::kFailed;
  std::string reason;
};
struct EndRun {  // record it, tell the user; also for a PENDING run that never found its members
  std::uint64_t key = 0;
  std::string id;
  schema::RunState state = schema::RunState::kFailed;
  std::string reason;
  RunEnd end = {};
};
struct AnswerStart {  // to the client that asked
  std::uint64_t token = 0;
  std::string run_id;
  Status status;  // ok: the run is RUNNING
};
struct AskStop {  // set the stop flag in the next step frame
  std::uint64_t key = 0;
};
using MembershipAction =
    std::variant<SendFrame, PrepareRun, BeginRun, DropRun, SaveRun, EndRun, RecordEnd, AnswerStart, AskStop>;

struct MembershipOptions {
  Per<Seat, std::string> names;  // of all nodes
  Seat self;
  std::uint16_t weight = 1;                               // weight of our own share of a batch
  std::uint64_t claim_timeout_ms = 5'000;                 // a granted claim without a proposal is void after this
  std::uint64_t prepare_timeout_ms = schema::kPrepareMs;  // without progress of those that still prepare
  std::uint64_t proposer_timeout_ms = 15'000;  // how long a member waits for a proposer that makes no progress
  // After our own save: the wait for a member that caused the end, or for any member while this node shuts down.
  std::uint64_t blamed_timeout_ms = 300;
  std::uint64_t leaving_timeout_ms = 2'000;
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);

  // --- events ---
  void connection(Seat peer, bool up, std::uint64_t now_ms);  // both directions work, or no longer
  void weighs(Seat peer, std::uint16_t weight);               // as its hello says; before it is connected
  // Waiting will not help with this peer: another build, another mesh, a wrong key. Called again as long as it lasts; a
  // pending start that waits for the peer ends after kHopelessMs, since the trouble might have been momentary.
  void cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms);
  // A client's start. key is drawn by the caller. Answered by AnswerStart with this token, sooner or later.
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  // The own vote. names: of the own data's files, to say which of them others have differently.
  void prepared(
      std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms,
      const engine::EachName& names = [](const auto&) {});
  // A node has got on with preparing the current run: large data take their time.
  void prepares(Seat seat, std::uint64_t now_ms);
  // Claim, Grant, Propose, Vote, Commit, Fail, Goodbye; anything else is not for membership and ignored, as is every
  // frame of another run than the current one, or of another view.
  void frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  // Liveness gave up on a peer (or on ourselves: peer == self).
  void lost(Seat peer, const std::string& message, std::uint64_t now_ms);
  // A client's stop of the current run. Error if there is no such run; ok and AskStop/EndRun otherwise.
  Status stop(const std::string& run_id, std::uint64_t now_ms);
  // The run itself: it cannot go on (we tell the others), or it came to its end.
  void failed(const schema::Fail& cause, std::uint64_t now_ms);
  void finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms);  // STOPPED, COMPLETED
  // The answer to SaveRun; again, if more becomes of it later.
  void saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms);
  // A past run recorded here: answers questions about it, and asks the members whose end is not known.
  void remember(std::uint64_t key, PastRun run);
  void stopping();  // the union of flags says stop
  // The run needs nothing more from this peer (its last report is in): losing it no longer ends the run.
  void peer_finished(Seat peer);
  // This node is being shut down: a run in progress ends FAILED here too; Goodbye goes to all.
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);

  // --- state ---
  std::vector<MembershipAction> take_actions();
  bool idle() const;
  // PENDING .. STOPPING of the current run; nothing when idle.
  std::optional<schema::RunState> state() const;
  const RunIdentity* current() const;
  // The nodes that a pending start waits for; empty if there is no pending start.
  std::vector<Seat> waited_for() const {
    return pending_ && !pending_->claiming() ? peers_.disconnected() : std::vector<Seat>{};
  }

 private:
  static constexpr Seat kGranter = ProposalRight::kGranter;
  static constexpr std::uint64_t kProposeAgainMs = 5'000;
  enum class Phase : std::uint8_t { kNone, kProposing, kPreparing, kVoted, kRunning, kStopping, kSaving };

  bool begun() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  bool current_is(std::uint64_t key) const { return current() != nullptr && current()->key == key; }
  // The view that frames of this run carry; a run that this node is not reserved for has not left its first.
  std::uint32_t view_number(std::uint64_t key) const {
    return phase_ != Phase::kNone && run_.key == key ? view_.number() : View::kFirst;
  }
  const std::string& name(Seat seat) const { return peers_.name(seat); }
  const std::string& own_name() const { return peers_.own_name(); }
  std::string taken_message() const;

  void emit(MembershipAction action) { actions_.push_back(std::move(action)); }
  void send(std::vector<Seat> to, std::uint64_t key, schema::FrameBody body);
  void reserve(Phase phase, RunIdentity run, Seat proposer, std::uint64_t deadline_ms);

  // a pending start
  void try_to_claim(std::uint64_t now_ms);
  void propose(std::uint64_t now_ms);
  void propose_again(std::uint64_t now_ms);
  PendingStart take_pending() { return *std::exchange(pending_, std::nullopt); }
  void give_grant_back(std::uint64_t key);
  void refuse_pending(const PendingStart& start, const std::string& message);
  void end_pending(schema::RunState state, ErrorKind kind, const std::string& reason);
  // proposer
  void fail_proposal(const schema::Fail& cause);
  void take_vote(Seat from, const schema::Vote& vote);
  void commit();
  // member
  void try_to_vote(std::uint64_t now_ms);
  void take_back_vote(schema::Fail cause);
  void drop();
  // running
  void begin(Choice choice);
  void end_run(schema::RunState state, const std::string& reason, const std::string& blamed = "");
  void settle(std::uint64_t now_ms);
  void fail_run(const schema::Fail& cause);

  void on_claim(Seat from, std::uint64_t key, const schema::Claim& claim, std::uint64_t now_ms);
  void on_grant(std::uint64_t key, const schema::Grant& grant, std::uint64_t now_ms);
  void on_propose(Seat from, std::uint64_t key, const schema::Propose& proposal, std::uint64_t now_ms);
  void on_commit(Seat from, std::uint64_t key, const schema::Commit& commit);
  void on_fail(Seat from, std::uint64_t key, const schema::Fail& cause);
  void on_goodbye(Seat from, std::uint64_t key);
  void on_ended(Seat from, std::uint64_t key, const schema::Ended& ended, std::uint64_t now_ms);

  const std::uint64_t claim_timeout_ms_, prepare_timeout_ms_, proposer_timeout_ms_, blamed_timeout_ms_,
      leaving_timeout_ms_;
  Peers peers_;
  ProposalRight right_;  // held by nobody where this node is not the one that grants
  std::vector<MembershipAction> actions_;
  bool shut_down_ = false;

  std::optional<PendingStart> pending_;  // only while there is no phase

  // The run that this node is reserved for, or in; meaningless without a phase.
  Phase phase_ = Phase::kNone;
  RunIdentity run_;
  View view_;
  Seat proposer_;
  std::uint64_t deadline_ms_ = 0;         // of the phase
  std::uint64_t proposed_ms_ = 0;         // the proposal was sent last, or heard last
  std::uint64_t token_ = 0;               // of a proposer: the client that waits for an answer
  Votes votes_;                           // of a proposer
  std::optional<schema::Vote> own_vote_;  // a member's, held until it is connected to all
  std::optional<schema::Fail> trouble_;   // seen by a member before the verdict
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

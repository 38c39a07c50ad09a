// Who takes part in a run: the two-phase start, the end of a run, and the one verdict all members share.
//
// Pure: events go in, actions come out; it knows no clock (now_ms is an event's field), socket or thread, so a seeded
// simulator drives it (tests/simulation). Owned by the node's thread.
//
// Start. The asked node is the proposer. It waits (PENDING, up to start-timeout) until every member is connected, then
// claims the right to propose from the member of lowest rank: claims are granted one at a time, first come first
// served, so of two starts in the same second exactly one proceeds and the other is refused with the winner's id. With
// the grant it proposes to all; every member prepares (loads data, builds the model, hashes) and votes; the proposer
// compares the hashes and commits, or fails the proposal with one message for all. A member that lost its proposer
// drops the reservation.
//
//   proposer:  idle -> connecting -> claiming -> proposing (own vote and theirs) -> running
//   member:    idle -> preparing -> voted -> running
//
// Until the commit only the proposer decides: a member that has voted and then sees trouble takes its vote back and
// waits for the verdict; if the commit had already left, the run begins there and fails at once, so that all members
// agree on what happened. A commit that reaches a node which no longer waits for it is answered with Fail.
//
// End. Any member that sees a cause (a lost peer, a non-finite gradient, an error of its own) sends Fail to all; the
// first cause seen wins, later ones change nothing. In view 1 there is one transition: FAILED. Carrying on will add
// views here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/membership/view.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

struct RunIdentity {
  std::uint64_t key = 0;  // drawn by the proposer, stands in every frame of the run
  std::string id;
  std::string spec;  // canonical job
  std::uint64_t start_timeout_ms = 30'000;
};

// Actions, to be carried out in order.
struct SendFrame {
  std::vector<Rank> to;
  schema::FrameHeader header;
  schema::FrameBody body;
};
struct PrepareRun {  // answer with prepared(); the run's exchange may buffer frames from now on
  RunIdentity run;
};
struct BeginRun {  // all committed
  RunIdentity run;
  schema::Commit choice;
  std::string why;  // the choice, in a sentence; only the proposer knows
};
struct DropRun {  // a reservation, or a PENDING run that was refused, that came to nothing: nothing is recorded
  std::uint64_t key = 0;
};
struct EndRun {  // record, save the committed state, tell the user; also for a PENDING run that never found its members
  std::uint64_t key = 0;
  std::string id;
  schema::RunState state = schema::RunState::kFailed;
  std::string reason;
};
struct AnswerStart {  // to the client that asked
  std::uint64_t token = 0;
  std::string run_id;
  Status status;  // ok: the run is RUNNING
};
struct AskStop {  // set the stop flag in the next step frame
  std::uint64_t key = 0;
};
using MembershipAction = std::variant<SendFrame, PrepareRun, BeginRun, DropRun, EndRun, AnswerStart, AskStop>;

struct MembershipOptions {
  std::vector<std::string> names;  // of all nodes, by rank
  Rank self = 0;
  std::uint64_t claim_timeout_ms = 5'000;      // a granted claim without a proposal is void after this
  std::uint64_t prepare_timeout_ms = 300'000;  // from the proposal to the last vote
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);

  // --- events ---
  void connection(Rank peer, bool up, std::uint64_t now_ms);  // both directions work, or no longer
  // A client's start. key is drawn by the caller. Answered by AnswerStart with this token, sooner or later.
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  void prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms);  // the own vote
  // Claim, Grant, Propose, Vote, Commit, Fail, Goodbye; anything else is not for membership and ignored, as is every
  // frame of another run than the current one.
  void frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  // Liveness gave up on a peer (or on ourselves: rank == self).
  void lost(Rank peer, const std::string& message, std::uint64_t now_ms);
  // A client's stop of the current run. Error if there is no such run; ok and AskStop/EndRun otherwise.
  Status stop(const std::string& run_id, std::uint64_t now_ms);
  // The run itself: it cannot go on (we tell the others), or it came to its end.
  void failed(const schema::Fail& cause, std::uint64_t now_ms);
  void finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms);  // STOPPED, COMPLETED
  void stopping();  // the union of flags says stop
  // The run needs nothing more from this peer (its last report is in): losing it no longer ends the run.
  void peer_finished(Rank peer);
  // This node is being shut down: a run in progress ends FAILED here too; Goodbye goes to all.
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);

  // --- state ---
  std::vector<MembershipAction> take_actions();
  bool idle() const;
  // PENDING .. STOPPING of the current run; nothing when idle.
  std::optional<schema::RunState> state() const;
  const RunIdentity* current() const;
  static constexpr std::uint32_t kView = 1;

 private:
  static constexpr Rank kGranter = 0;  // the member of lowest rank gives the right to propose
  enum class Phase : std::uint8_t {
    kIdle,
    kConnecting,
    kClaiming,
    kProposing,
    kPreparing,
    kVoted,
    kRunning,
    kStopping
  };
  // At rank 0: who may propose. Cleared when its proposal arrives (the run itself is the reservation then).
  struct Holder {
    std::uint64_t key = 0;
    std::string id;
    Rank rank = 0;
    std::uint64_t void_at_ms = 0;
  };

  bool proposed_by_me() const { return proposer_ == options_.self; }
  bool begun() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  bool current_is(std::uint64_t key) const { return phase_ != Phase::kIdle && run_.key == key; }
  const std::string& name(Rank rank) const { return options_.names[rank]; }
  const std::string& own_name() const { return options_.names[options_.self]; }
  std::string names_of(const std::vector<Rank>& ranks) const;
  std::vector<Rank> others() const;
  std::vector<Rank> disconnected() const;
  std::string taken_message() const;

  void act(MembershipAction action) { actions_.push_back(std::move(action)); }
  void send(std::vector<Rank> to, std::uint64_t key, schema::FrameBody body);
  void answer(Error error);
  void reserve(Phase phase, RunIdentity run, Rank proposer, std::uint64_t deadline_ms);
  void become_idle();

  // proposer
  void try_to_claim(std::uint64_t now_ms);
  void propose(std::uint64_t now_ms);
  void give_grant_back(std::uint64_t key);
  void refuse_own_start(const std::string& message);
  void end_pending(schema::RunState state, ErrorKind kind, const std::string& reason);
  void fail_proposal(const schema::Fail& cause);
  void take_vote(Rank from, const schema::Vote& vote);
  void commit();
  // member
  void try_to_vote(std::uint64_t now_ms);
  void take_back_vote(schema::Fail cause);
  void drop();
  // running
  void begin(const schema::Commit& choice, std::string why);
  void end_run(schema::RunState state, const std::string& reason);
  void fail_run(const schema::Fail& cause);

  void on_claim(Rank from, std::uint64_t key, const schema::Claim& claim, std::uint64_t now_ms);
  void on_grant(std::uint64_t key, const schema::Grant& grant, std::uint64_t now_ms);
  void on_propose(Rank from, std::uint64_t key, const schema::Propose& proposal, std::uint64_t now_ms);
  void on_commit(Rank from, std::uint64_t key, const schema::Commit& commit);
  void on_fail(Rank from, std::uint64_t key, const schema::Fail& cause);
  void on_goodbye(Rank from, std::uint64_t key);

  MembershipOptions options_;
  std::vector<MembershipAction> actions_;
  std::vector<bool> connected_;
  std::optional<Holder> holder_;
  bool shut_down_ = false;

  // The current run; meaningless while idle.
  Phase phase_ = Phase::kIdle;
  RunIdentity run_;
  Rank proposer_ = 0;
  std::optional<std::uint64_t> token_;   // of the client that still waits for an answer
  std::uint64_t deadline_ms_ = 0;        // of the phase
  std::uint64_t start_deadline_ms_ = 0;  // of a PENDING run
  std::vector<std::optional<schema::Vote>> votes_;
  std::optional<schema::Vote> own_vote_;  // a member's, held until it is connected to all
  std::optional<schema::Fail> trouble_;   // seen by a member before the verdict
  bool stop_asked_ = false;
  std::vector<bool> finished_;
};

}  // namespace tg::daemon

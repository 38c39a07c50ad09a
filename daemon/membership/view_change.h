// ViewChange is one voter's part of the protocol by which the members of view v agree on view v+1: single-decree Paxos
// among the voters of v, whose promise seals the view. Pure; part of Membership, with one for the active run and one
// for each past run that this node still votes in. DESIGN.md, section 6b; tests/model/views.pml checks it.
//
//   Suspect            a reason for a change: a member is lost, leaves, or is ineligible
//   Prepare            the coordinator, which is the most senior reachable voter, starts a ballot (count, seat) above
//                      every ballot in its vote file. Its own promise is durable first
//   Promise            a voter writes its promise, seals v (it never commits in v again, whatever becomes of the
//                      ballot) and reports its committed step. Hence the minimum over a quorum is a state that each
//                      of them holds, or reaches by undoing one step
//   Accept, Accepted   the value: that of the highest accepted ballot among the promises, else choose_view.h's: the
//                      eligible members with state that reach each other. Durable at a quorum; an Accept seals v, too
//   Decide             a voter records it durably, forwards it to the voters of v and v+1, then installs or leaves
//
// Rules beyond textbook Paxos, each of which closes a hole:
// - A promised voter cannot go back, so a ballot may start with no member lost: when the coordinator of the highest
//   ballot is silent for a view timeout, which grows with the ballot, the next most senior voter takes over.
//   Heartbeats do not count as its voice: another thread sends them.
// - Without a reachable quorum a coordinator sends no Prepare: it may only be deaf, and would disturb the others.
// - The coordinator waits for every reachable voter for up to peer-timeout, though a quorum suffices: else each change
//   would evict the slowest member.
// - While two voters do not reach each other it repeats the Prepare for kReconnectMs before one of them is evicted.
// - A restarted voter votes without state: it is in no new value and never coordinates. Like an ineligible member, it
//   is not waited for.
// - A message of an older view is answered with the newest Decide, which also comes first on every new connection: a
//   Decide may have died with a connection.
// - Where nobody alive has heard what an old vote told, two views may have one number, or a newer view take back what
// is
//   confirmed here. Of the first the higher by (start, members) continues, of the second the newer one; the node that
//   gives way sets its state aside.
// - What a node of no known view says is a hint: this node sends its own newest Decide to the voters of its view, which
//   answer with a newer one. If none is heard the run is PAUSED and says so.
// - A member that was disconnected between its promise and the install is suspected again in v+1, even if it is back:
//   frames of v+1 may be lost.
// - A node installs v+1 only if it promised and can reach the start state by at most one undo, whatever Decide says.
// - A vote is counted each time that it is written. A process that began with fewer writes than its seat has told has
//   an old vote, of a restored or copied directory: it is no vote. The counts are kept with the view.
// - The voter is (seat, state directory): a wiped directory has no vote. A node says so when it is asked: a lost vote,
//   which no return brings back, pauses a run for good.
// - A joiner enters a value only if every member of v promised at the quiesced step that its snapshot has: a failed
//   join evicts nobody. It has no vote before v+1.
// - A vote that cannot be written is not cast: the node suspects itself; also while its disk stands still.
// - One vote is written at a time. What comes meanwhile is written after it, as one; the earlier answer is not sent
// then.
//
// Without a quorum pause_reason() names what is missing; the pause ends by itself when a quorum is back.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/choose_view.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/view.h"
#include "daemon/membership/voter.h"

namespace tg::daemon {

class ViewChange {
 public:
  static constexpr std::uint64_t kViewTimeoutMs = 1'000, kMaxViewTimeoutMs = 16'000;  // a silent coordinator
  static constexpr std::uint64_t kRepeatMs = 1'000;          // between repeated messages, or writes of a decision
  static constexpr std::uint64_t kReconnectMs = 2'500;       // for two voters to reconnect; more than two repeats
  static constexpr std::uint64_t kAnswerMs = 100;            // between answers to a peer in an older view
  static constexpr std::uint64_t kFirstStepDelayMs = 1'000;  // before the first step of a view with NextView::waits
  static constexpr std::uint64_t kLeavingMs = 2'000;         // a shutdown waits this long for the view without it

  struct Self : VoterId {
    std::uint64_t peer_timeout_ms = 10'000;
  };
  // has_state: the run's state is in memory; otherwise this node can only vote.
  ViewChange(const Peers& peers, Outbox& out, const Self& self, VoterState vote, bool has_state);
  void record();  // writes the vote of a run that begins

  // --- events ---
  void on_connected(Seat peer, std::uint64_t now_ms);
  enum class Loss : std::uint8_t { kUnreachable, kLeaving, kReconnected };  // reconnected: frames in flight are lost
  // is_needed: the loss of a member is a reason for a change.
  void on_peer_lost(Seat peer, Loss loss, const std::string& why, std::uint64_t now_ms, bool is_needed = true);
  void on_ineligible(const std::string& why, std::uint64_t now_ms);  // this node is
  void on_shut_down() { leaving_ = true; }
  void leave(const std::string& why, std::uint64_t now_ms);  // starts the change that evicts this node
  void stay() { leaving_ = false; }                          // no other node could continue the run
  void drop_state();                                         // this node can only vote from now on
  void on_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void on_stale_view(Seat from, std::uint32_t view, std::uint64_t now_ms);  // any other frame, or a heartbeat
  // A node of no view that is known here says so: the voters are asked. what: "says that the run has ended".
  void on_hint(Seat from, const std::string& what, std::uint64_t now_ms);
  void on_sealed(const SealReport& report, std::uint64_t now_ms);          // answers Seal
  void on_vote_written(const std::string& problem, std::uint64_t now_ms);  // answers WriteVote; "" = it is durable
  void on_disk_problem(const std::string& why, std::uint64_t now_ms);      // until a vote is written
  void tick(std::uint64_t now_ms);
  // The senior's reason to change the view of quiesced members: this joiner has their state.
  void admit(ReadyJoiner joiner, std::uint64_t now_ms);
  // As the joiner: this node holds the state of `step` for the next view, until drop_state().
  void install_snapshot(std::uint64_t step);
  void on_decided(const schema::NextView& next, std::uint64_t now_ms);

  // --- state ---
  const View& view() const { return view_; }
  const schema::NextView& newest() const { return vote_.view; }  // view(), as it was decided
  bool has_state() const { return has_state_; }
  // This view is decided, or follows one that is, and the decision is not written yet: its frames wait for that.
  bool is_ahead(std::uint32_t view) const { return !is_installed() && view >= view_.number(); }
  bool in_progress() const { return is_deciding() || !is_installed(); }  // until the new view is installed
  bool is_alone() const;                                                 // no other voter is reachable
  // What is missing for a quorum and the way out; "" while the run, of this id, is not paused.
  std::string pause_reason(const std::string& run_id) const;
  // The committed step, once sealed.
  std::optional<std::uint64_t> step() const { return sealed_ ? std::optional(seal_report_.step) : std::nullopt; }
  // Why no member can ever continue; "" otherwise.
  const std::string& unrecoverable() const { return unrecoverable_; }
  // The InstallView (stays) or LeaveView that was emitted since the last call.
  struct Outcome {
    bool stays = false;
    schema::NextView next;
  };
  std::optional<Outcome> take_outcome() { return std::exchange(outcome_, std::nullopt); }

 private:
  enum class Phase : std::uint8_t { kNone, kPreparing, kGathering, kAccepting };  // this node's ballot
  // Ineligible and leaving voters vote, but neither coordinate nor are waited for. One without its vote is asked again.
  enum class Reachability : std::uint8_t { kReachable, kIneligible, kLeaving, kWithoutVote, kUnreachable };
  using enum Reachability;
  struct PeerState {  // a peer, as this node sees it
    Reachability status = kReachable;
    std::string why;            // it is not reachable
    bool suspected = false;     // a reason for the change of this view
    bool disconnected = false;  // at some moment since this node promised
    std::optional<std::uint64_t> answered_ms = std::nullopt;
    std::optional<schema::Promise> promise = std::nullopt;  // in this node's ballot
    bool accepted = false;
    std::uint64_t told_vote = 0, told_incarnation = 0;  // the newest vote that this seat has told, and its process
  };
  // An answer that is due once the vote is written and the node has reported its seal.
  struct Answer {
    enum class Kind : std::uint8_t { kNothing, kPromise, kAccepted } kind = Kind::kNothing;
    schema::Ballot ballot = {};
    Seat to = {};            // its coordinator; this node: its own ballot
    std::uint32_t view = 0;  // the view that was changed then
    bool operator==(const Answer&) const = default;
  };

  bool is_self(Seat seat) const { return seat == peers_.self(); }
  bool is_voter() const { return view_.has_voter(peers_.self(), self_.directory); }
  bool is_coordinator() const { return phase_ != Phase::kNone; }
  bool has_reason() const { return times_.noticed_ms > 0; }
  bool is_deciding() const { return sealed_ || has_reason(); }
  bool is_installed() const { return applied_view_ == view_.number(); }  // or left
  std::vector<Seat> others() const;
  template <class Condition>
  std::vector<Seat> voters(Condition condition) const;
  void send(std::vector<Seat> to, schema::FrameBody body) {
    out_.send(std::move(to), vote_.run_key, view_.number(), std::move(body));
  }
  void send_decision(std::vector<Seat> to) {
    out_.send(std::move(to), vote_.run_key, view_.number() - 1, schema::Decide{vote_.view});
  }
  void send_ineligible(std::vector<Seat> to) {
    send(std::move(to),
         schema::Suspect{view_.number_of(peers_.self()), peers_.own_name() + " has no state of the run in memory"});
  }
  void set_status(Seat seat, Reachability status, std::uint64_t now_ms);
  void suspect(Seat seat, const std::string& why, std::uint64_t now_ms, bool is_own);
  std::string reasons() const;
  std::string whys_of(const std::vector<Seat>& seats) const;
  std::string lost_votes_text(const std::string& run_id) const;
  bool must_start_ballot(std::uint64_t now_ms) const;
  void advance(std::uint64_t now_ms);
  void start_ballot(std::uint64_t now_ms);
  bool has_reachable_quorum() const;
  void repeat(std::uint64_t now_ms);
  void try_to_propose(std::uint64_t now_ms);
  void count_accepted(std::uint64_t now_ms);
  void on_ballot(const schema::Ballot& ballot, std::uint64_t now_ms);
  bool is_from(Seat from, const schema::Ballot& ballot) const { return view_.member_of(ballot.seat) == from; }
  bool is_written(const Answer& answer) const;
  std::string unknown_in(const schema::NextView& next) const;
  bool is_next(const schema::NextView& next) const;
  void record_answer(Answer::Kind kind, const schema::Ballot& ballot, Seat to, std::uint64_t now_ms);
  void write_vote(Answer answer);
  void request_seal(const Answer& answer, std::uint64_t now_ms);
  void send_answer(const Answer& answer, const SealReport& report, std::uint64_t now_ms);
  void note_hint(const std::string& what, const std::string& next = "");
  void note_votes();  // the view's
  // Whether a Promise or an Accepted comes from an old vote, which is a reason for a change.
  bool is_old(Seat from, const auto& answer, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Suspect& suspect, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Prepare& prepare, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Promise& promise, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Nack& nack, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Accept& accept, std::uint64_t now_ms);
  void on_message(Seat from, const schema::Accepted& accepted, std::uint64_t now_ms);
  void on_message(Seat, const auto&, std::uint64_t) {}
  bool knows_members(const schema::NextView& next);  // else says what is missing
  void record_decision(const schema::NextView& next, std::uint64_t now_ms);
  void apply_decision(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const Self self_;
  VoterState vote_;             // as last handed to the disk
  View view_;                   // the vote's
  View previous_view_;          // the view before the decision
  std::uint32_t applied_view_;  // number of the installed (or left) view; older than the vote's until that is written
  std::optional<Answer> writing_, next_write_;
  std::deque<Answer> pending_seals_;  // not answered yet, in order
  schema::Ballot promise_written_, accept_written_;
  const std::uint64_t votes_before_;  // writes of the vote before this process began
  std::uint64_t written_;             // writes that are durable
  bool has_state_, leaving_ = false, sealed_ = false;
  bool can_install_ = false;  // this node's state can begin the newest view
  std::string ineligible_, unrecoverable_;
  std::string write_problem_;    // why the last vote could not be written
  std::string hint_;             // the last one about this view
  std::uint64_t hinted_ms_ = 0;  // 0: none
  SealReport seal_report_;
  Per<Seat, PeerState> peer_states_;
  ChangeTimes times_, decision_times_;
  std::optional<Outcome> outcome_;
  std::optional<ReadyJoiner> joiner_;
  schema::Ballot highest_ballot_;           // seen, Nacks included
  std::uint64_t coordinator_heard_ms_ = 0;  // its coordinator's last message, or the start of the change
  std::uint64_t failed_ms_ = 0;             // the last failed write
  std::uint64_t quorum_back_ms_ = 0;        // a quorum became reachable again
  // This node's ballot.
  Phase phase_ = Phase::kNone;
  schema::Ballot ballot_;
  schema::NextView value_;
  std::uint64_t began_ms_ = 0, sent_ms_ = 0;
  bool waited_enough_ = false;  // for peer-timeout
  bool overdue_ = false;        // undecided for twice peer-timeout
};

}  // namespace tg::daemon

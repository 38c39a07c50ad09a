// How the members of a view agree on the next one when one of them is lost: the run goes on without it, all who go on
// begin with one state, and at most one step is undone. DESIGN.md, section 6b; checked by tests/model/views.pml. Pure.
// Part of Membership: one for the run of this node, and one for each that it was a member of before it was restarted.
//
// One change, v to v+1, is one decision of Paxos among the voters of v: the members' seats, each with the state
// directory that it had. A voter outlives its process, for its vote is on disk before anybody is told of it.
//
//   lost, Suspect ...  there is a reason; the most senior voter that seems to be there leads
//   Prepare            its ballot, on its own disk first. Ballots are never used twice: each is above all in the vote
//   Promise            on disk, then the freeze, and with it what is committed: this process commits nothing in v any
//                      more, whatever becomes of the ballot. So of all who promised, the least that one has committed
//                      is what all have, or can go back to by one step
//   Accept, Accepted   the next view, on disk at a quorum (view.h): a value that an earlier ballot may have decided,
//                      else who promised, has a state, can go on and hears the others (choose_view.h). It freezes as
//                      well
//   Decide             on disk, then told to all voters of v and v+1, then done: InstallView or LeaveView
//
// What looks odd closes a hole:
// - The leader repeats its Prepare or Accept every second. Where that falls silent the next most senior one begins a
//   higher ballot after a time that grows, also if nobody seems lost any more: who promised cannot go back. Beats do
//   not count: they come from a thread of their own. Who hears too few for a quorum asks nobody until they are back:
//   he may only be deaf, and would keep those from it who could decide.
// - It waits for everybody whom it hears, though a quorum is enough: else each change would throw out the slow.
// - Where two of them do not hear each other it asks again for a while, before one is left out: connections come back.
// - A new process of a voter votes, but it has no state, so it is in no value and never leads. Nor is it waited for, or
//   who says of itself that it cannot go on.
// - Who speaks of an older view is told the newest Decide, and on a new connection that comes first: a Decide may have
//   died with a connection.
// - Who is lost between its promise and the install is lost in v+1, too, also if it is back by then: a frame of v+1 may
//   have been on the way. That is one more change.
// - Who has not promised, or has not got the step that a view begins with and cannot go back to it, is no member of it
//   whatever the Decide says: by these rules it cannot be, and another build may have others.
// - Another state directory at the same seat is no voter; what it says does not count.
// - Who comes back is a member with the next view only where all others are, held at the state that it was given: a
//   failed join takes nobody out. It has no vote before.
// - A vote that cannot be written is not given: this node takes no part and says so (Suspect, of itself).
//
// Not enough voters for a quorum: paused() says who is missing. It ends by itself when they are back.
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
  static constexpr std::uint64_t kViewTimeoutMs = 1'000, kMaxViewTimeoutMs = 16'000;  // silence of who leads
  static constexpr std::uint64_t kAgainMs = 1'000;    // between repeats, and between attempts to write a decision
  static constexpr std::uint64_t kLinksMs = 2'500;    // for two to hear each other again; more than two repeats
  static constexpr std::uint64_t kAnswerMs = 100;     // between two answers to a peer that speaks of an older view
  static constexpr std::uint64_t kGraceMs = 1'000;    // before the first step of a view that waits (NextView::waits)
  static constexpr std::uint64_t kLeavingMs = 2'000;  // how long who is shut down waits for a decision without it

  struct Self {
    std::uint64_t directory = 0, incarnation = 0;
    std::uint64_t peer_timeout_ms = 10'000;
  };
  // has_state: the run's, in memory; else it can only vote.
  ViewChange(const Peers& peers, Outbox& out, const Self& self, VoterState vote, bool has_state);
  void record();  // the vote of a run that begins

  // --- events ---
  void connected(Seat peer, std::uint64_t now_ms);
  enum class Loss : std::uint8_t { kNotHeard, kLeaves, kBack };  // back: only what was on its way is lost
  // is_needed: it is a reason for a change, if the peer is a member.
  void lost(Seat peer, Loss loss, const std::string& why, std::uint64_t now_ms, bool is_needed = true);
  void unfit(const std::string& why, std::uint64_t now_ms);  // this node cannot go on
  void leaves() { leaves_ = true; }                          // this node is being shut down
  void leave(const std::string& why, std::uint64_t now_ms);  // it is to be left out, by a change that begins now
  void stay() { leaves_ = false; }                           // or not: nobody could go on without it
  void drop_state();                                         // it has no part in the run any more, but its vote counts
  void frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void speaks(Seat from, std::uint32_t view, std::uint64_t now_ms);  // any other frame, or a beat, of this view
  void stands(const Standing& standing, std::uint64_t now_ms);       // the answer to Freeze
  void voted(bool ok, std::uint64_t now_ms);                         // the answer to WriteVote
  void tick(std::uint64_t now_ms);
  // A reason for a change that is none: all members are held, and a newcomer has their state. The most senior one's.
  void admit(Newcomer newcomer, std::uint64_t now_ms);
  // The newcomer's: this node has the state of so many steps, for the view after the newest. Until it is dropped.
  void be_fed(std::uint64_t step);
  void learn(const schema::NextView& next, std::uint64_t now_ms);  // what was decided

  // --- state ---
  const View& view() const { return view_; }
  const schema::NextView& newest() const { return vote_.view; }  // the same, as it was decided
  bool has_state() const { return has_state_; }
  bool in_change() const { return frozen_ || noticed(); }
  // Nobody else is there who could decide anything.
  bool alone() const;
  // Who is away and what helps, if too few are there; "" otherwise.
  std::string paused() const;
  // What is committed, once it is frozen.
  std::optional<std::uint64_t> step() const { return frozen_ ? std::optional(standing_.step) : std::nullopt; }
  // Nobody can go on, ever: why.
  const std::string& hopeless() const { return hopeless_; }
  // What InstallView or LeaveView was emitted for since this was last asked.
  struct Outcome {
    bool stays = false;
    schema::NextView next;
  };
  std::optional<Outcome> take_outcome() { return std::exchange(outcome_, std::nullopt); }

 private:
  enum class Phase : std::uint8_t { kNone, kPreparing, kGathering, kAccepting };  // of the own ballot
  // Who cannot go on says so; it votes, as who leaves does, but neither leads or is waited for.
  enum class Presence : std::uint8_t { kHere, kCannot, kLeaves, kAway };
  struct Voice {  // a node, as this one hears it
    Presence presence = Presence::kHere;
    std::string why;         // it is not just here
    bool suspected = false;  // in this view
    bool broke = false;      // it was not heard for a moment since this node has promised
    std::optional<std::uint64_t> answered_ms = std::nullopt;
    std::optional<schema::Promise> promise = std::nullopt;  // in the own ballot
    bool accepted = false;
  };
  // What follows when the vote is written, and then when it is known how this node stands.
  struct After {
    enum class What : std::uint8_t { kNothing, kPromise, kAccepted } what = What::kNothing;
    schema::Ballot ballot = {};
    Seat to = {};            // who leads it; this node: the own ballot
    std::uint32_t view = 0;  // that was changed then
  };

  bool is_self(Seat seat) const { return seat == peers_.self(); }
  bool votes() const { return view_.has_voter(peers_.self(), self_.directory); }
  bool leads() const { return phase_ != Phase::kNone; }
  bool noticed() const { return times_.noticed_ms > 0; }
  std::vector<Seat> others() const;
  template <class Condition>
  std::vector<Seat> voters(Condition condition) const;
  void send(std::vector<Seat> to, schema::FrameBody body) {
    out_.send(std::move(to), vote_.key, view_.number(), std::move(body));
  }
  void send_decision(std::vector<Seat> to) {
    out_.send(std::move(to), vote_.key, view_.number() - 1, schema::Decide{vote_.view});
  }
  void say_that_it_cannot(std::vector<Seat> to) {
    send(std::move(to), schema::Suspect{static_cast<std::uint32_t>(peers_.self().index()),
                                        peers_.own_name() + " has no state of the run in memory"});
  }
  void is_now(Seat seat, Presence presence, std::uint64_t now_ms);
  void suspect(Seat seat, const std::string& why, std::uint64_t now_ms, bool tell);
  std::string why() const;
  bool due(std::uint64_t now_ms) const;
  void proceed(std::uint64_t now_ms);
  void lead(std::uint64_t now_ms);
  bool can_decide() const;
  void repeat(std::uint64_t now_ms);
  void try_to_choose(std::uint64_t now_ms);
  void count(std::uint64_t now_ms);
  void heard(const schema::Ballot& ballot, std::uint64_t now_ms);
  bool is_written(const After& after) const;
  bool is_next(const schema::NextView& next) const;
  void answer(After::What what, const schema::Ballot& ballot, Seat to, std::uint64_t now_ms);
  void write(After after);
  void ask(const After& after, std::uint64_t now_ms);
  void tell(const After& after, const Standing& standing, std::uint64_t now_ms);
  void on(Seat from, const schema::Suspect& suspect, std::uint64_t now_ms);
  void on(Seat from, const schema::Prepare& prepare, std::uint64_t now_ms);
  void on(Seat from, const schema::Promise& promise, std::uint64_t now_ms);
  void on(Seat from, const schema::Outvoted& outvoted, std::uint64_t now_ms);
  void on(Seat from, const schema::Accept& accept, std::uint64_t now_ms);
  void on(Seat from, const schema::Accepted& accepted, std::uint64_t now_ms);
  void on(Seat, const auto&, std::uint64_t) {}
  void act(std::uint64_t now_ms);

  const Peers& peers_;
  Outbox& out_;
  const Self self_;
  VoterState vote_;         // as it was handed to the disk last
  View view_;               // that of the vote
  View before_;             // the view that this node was in
  std::uint32_t acted_on_;  // number of the view that is installed, or left; the vote's is newer until that is written
  std::deque<After> writes_, asks_;  // that were not answered yet, in order
  schema::Ballot promise_written_, accept_written_;
  bool has_state_, leaves_ = false, frozen_ = false, unwritten_ = false;  // unwritten: the last vote could not be
  bool reaches_ = false;                                                  // its state can begin the newest view
  std::string unfit_, hopeless_;
  Standing standing_;
  Per<Seat, Voice> voices_;
  ChangeTimes times_, decision_times_;
  std::optional<Outcome> outcome_;
  std::optional<Newcomer> newcomer_;
  schema::Ballot heard_;         // the highest, also of a refusal
  std::uint64_t heard_ms_ = 0;   // its leader was heard, or the change began
  std::uint64_t failed_ms_ = 0;  // the last write that failed
  std::uint64_t quorum_ms_ = 0;  // enough to decide came back
  // The own ballot.
  Phase phase_ = Phase::kNone;
  schema::Ballot ballot_;
  schema::NextView value_;
  std::uint64_t began_ms_ = 0, sent_ms_ = 0;
  bool late_ = false;     // it has waited for peer-timeout
  bool overdue_ = false;  // nothing was decided for twice that time
};

}  // namespace tg::daemon

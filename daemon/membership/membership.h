// Who takes part in a run: the two-phase start (start.h), how the others go on when a member is lost (view_change.h),
// how a node comes into a run that is on (admission.h, joining.h), the end with the one verdict that all members share
// (end.h). It knows seats only; the members of a run and the number
// of their list are a View. Here is told whose an event is, and what it costs (causes.h); read on in those three.
//
// Pure: events go in, actions come out; it knows no clock (now_ms is an event's field), socket or thread, so a seeded
// simulator drives it (tests/simulation). Owned by the node's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/actions.h"
#include "daemon/membership/admission.h"
#include "daemon/membership/end.h"
#include "daemon/membership/joining.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/start.h"
#include "daemon/membership/view_change.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct MembershipOptions {
  Per<Seat, std::string> names;  // of all nodes
  Seat self;
  std::uint16_t weight = 1;                               // weight of our own share of a batch
  std::uint64_t directory = 0;                            // number of the state directory
  std::uint64_t incarnation = 0;                          // of this process, as its hellos say
  std::uint64_t peer_timeout_ms = 10'000;                 // how long a view change waits for who is heard
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
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // --- events ---
  // Both directions work, or no longer. rekeys: it will be up again, with other keys.
  void connection(Seat peer, bool up, std::uint64_t now_ms, bool rekeys = false);
  // A connection of the run is given up (LastWords). up_again: there is another one already, so nobody goes on without
  // the peer for that.
  void gave_up(Seat peer, const std::string& message, bool up_again, std::uint64_t now_ms);
  void weighs(Seat peer, std::uint16_t weight);  // as its hello says; before it is connected
  // Waiting will not help with this peer: another build, another mesh, a wrong key. Called again as long as it lasts; a
  // pending start that waits for the peer ends after kHopelessMs, since the trouble might have been momentary.
  void cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms);
  // A client's start, or with run.resume a resume. key is drawn by the caller. Answered by AnswerStart with this token,
  // sooner or later.
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  // The answer to FindStates. known_lineage: that of the last beginning of the run that this node knows.
  void offered(std::uint64_t key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms);
  // The own vote. names: of the own data's files, to say which of them others have differently.
  void prepared(
      std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms,
      const engine::EachName& names = [](const auto&) {});
  // A node has got on with preparing the current run: large data take their time, and so do states that are looked for.
  void prepares(Seat seat, std::uint64_t now_ms);
  // Claim, Grant, Propose, Offer, Vote, Commit, Fail, Goodbye, Ended and those of a view change; anything else is not
  // for membership and ignored, as is every frame of a run that is not known here. Who speaks of an older view is told
  // the newest one.
  void frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  // Any other frame, or a beat, that is not of the view that this node knows.
  void speaks(Seat from, std::uint64_t key, std::uint32_t view, std::uint64_t now_ms);
  void beats(Seat from, const std::string& run_id, std::uint32_t lineage, std::uint32_t view, std::uint64_t now_ms);
  // A run is on at other nodes, and this one, which is in none, may come into it.
  void is_on(const std::string& run_id, std::uint64_t now_ms);
  // The answers to HoldRun (again and again, as long as it is so), ReadPast and TakeFeed (why: "" = it has the state).
  void held(std::uint64_t key, std::uint64_t now_ms);
  void feeds(std::uint64_t key, schema::Feed feed, std::uint64_t now_ms);
  void fed(std::uint64_t key, const std::string& why, std::uint64_t now_ms);
  // The answers to Freeze and to WriteVote.
  void stands(std::uint64_t key, const Standing& standing, std::uint64_t now_ms);
  void voted(std::uint64_t key, bool ok, std::uint64_t now_ms);
  // Liveness gave up on a peer (or on ourselves: peer == self).
  void lost(Seat peer, const std::string& message, std::uint64_t now_ms);
  // A client's stop of the current run. Error if there is no such run; ok and AskStop/EndRun otherwise. Of a PAUSED run
  // this node's part alone ends, INTERRUPTED: it may go on elsewhere.
  Status stop(const std::string& run_id, std::uint64_t now_ms);
  // A client's leave: this node leaves the current run where all members are held, INTERRUPTED for this node; the
  // others go on without the loss of a step. Error if it cannot; a run that ends first ends as it would.
  Status leave(std::uint64_t now_ms);
  void stays_out();  // of the run that is on elsewhere: it does not ask any more
  // The run itself: it cannot go on (we tell the others; kRunFailed: nobody can), or it came to its end.
  void failed(const schema::Fail& cause, std::uint64_t now_ms);
  void finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms);  // STOPPED, COMPLETED
  // The answer to SaveRun; again, if more becomes of it later.
  void saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms);
  // A past run recorded here: answers questions about it, and asks the members whose end is not known.
  void remember(std::uint64_t key, PastRun run);
  // The vote of such a run that was not over when this node ended: its other members may need it to go on.
  void remember_voter(VoterState vote, std::string run_id);
  void stopping();  // the union of flags says stop
  // The run needs nothing more from this peer (its last report is in): losing it costs nothing any more.
  void peer_finished(Seat peer);
  // This node is being shut down: Goodbye goes to all. A run in progress ends INTERRUPTED for this node, as soon as the
  // others have decided to go on without it, or ViewChange::kLeavingMs later.
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);

  // --- state ---
  std::vector<MembershipAction> take_actions();
  bool has_actions() const { return !out_.empty(); }
  bool idle() const { return current() == nullptr; }
  bool joins() const { return joining_.prepares(); }
  // PENDING .. STOPPING or PAUSED of the current run; nothing when idle.
  std::optional<schema::RunState> state() const;
  // Why the current run is PAUSED, and the way out; "" if it is not.
  std::string paused() const { return change_ ? change_->paused() : ""; }
  const View& view() const { return end_.view(); }  // of a run that has begun
  const RunIdentity* current() const {
    return end_.active() ? &end_.run() : joining_.prepares() ? &joining_.run() : start_.current();
  }
  // The nodes that a pending start waits for; empty if there is no pending start.
  std::vector<Seat> waited_for() const { return start_.waited_for(); }
  // The members of the newest view that this node knows of a run that it has left, by seat; all nodes if it knows none.
  std::vector<Seat> voters_of(const std::string& run_id) const;

 private:
  struct PastVoter {  // of a run that is over for this node alone
    std::string run_id;
    std::unique_ptr<ViewChange> change;
  };
  // The view that frames of this run carry; a run that has not begun here has not left its first.
  std::uint32_t view_number(std::uint64_t key) const { return end_.is(key) ? end_.view().number() : View::kFirst; }
  ViewChange* change_of(std::uint64_t key);
  const ViewChange* voter_in(const std::string& run_id) const;
  template <class Event>
  void for_each_change(Event event);
  void came(Seat peer, std::uint64_t now_ms);  // connected
  void costs_a_member(Seat peer, ViewChange::Loss loss, const std::string& why, std::uint64_t now_ms);
  void run_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void join_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void follow(std::uint64_t now_ms);
  void follow_joining(std::uint64_t now_ms);
  void begin_admission();
  void not_joined(std::uint64_t now_ms);
  void ask_to_leave(std::uint64_t now_ms);
  void end_hold(const std::string& why);
  bool stops() const { return shut_down_ || end_.state() == schema::RunState::kStopping; }
  std::string words_of_leaving() const { return peers_.own_name() + " left, as it was told to"; }

  Peers peers_;
  Outbox out_;
  End end_;
  Start start_;
  const ViewChange::Self self_;
  std::unique_ptr<ViewChange> change_;         // of the run that goes on here
  std::optional<Admission> admission_;         // to that
  Joining joining_;                            // another one
  schema::Vote own_vote_;                      // of the run that was prepared last
  engine::EachName own_names_;                 // the same
  std::map<std::uint64_t, PastVoter> voters_;  // by key
  bool held_ = false;                          // for a newcomer or for who leaves, as the most senior member said last
  bool stop_asked_ = false;                    // here, of the run that goes on
  bool shut_down_ = false;
  std::uint64_t leaving_ms_ = 0;                  // since when it is shut down
  std::optional<std::uint64_t> ask_to_leave_ms_;  // a client wants this node to leave the run; when it asks again
};

}  // namespace tg::daemon

// Membership decides which nodes take part in a run: the two-phase start or resume (start.h), the view change after a
// failure (view_change.h), joins and leaves (admission.h, joiner.h), and the end with one outcome that all members
// share (run_lifecycle.h). It routes each event to the part that it concerns, and failure_policy.h says what a failure
// does. It knows nodes by seat; the numbered list of a run's members is a View.
//
// Pure: events go in, actions come out; it has no clock (now_ms comes with each event), socket or thread, so a seeded
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
#include "daemon/membership/joiner.h"
#include "daemon/membership/lineage.h"
#include "daemon/membership/peers.h"
#include "daemon/membership/run_lifecycle.h"
#include "daemon/membership/start.h"
#include "daemon/membership/view_change.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

struct MembershipOptions {
  schema::NodeList names;
  Seat self;
  std::uint16_t weight = 1;                               // this node's share of a batch
  std::uint64_t directory = 0;                            // the state directory's number
  std::uint64_t incarnation = 0;                          // this process's, as in its hellos
  std::uint64_t peer_timeout_ms = 10'000;                 // how long a view change waits for a reachable voter
  std::uint64_t claim_timeout_ms = 5'000;                 // a granted claim without a proposal is void after this
  std::uint64_t prepare_timeout_ms = schema::kPrepareMs;  // without progress in preparing
  std::uint64_t proposer_timeout_ms = 15'000;  // how long a member waits for a proposer that makes no progress
  // The wait after this node's save: for a member that caused the end; for any member during a shutdown.
  std::uint64_t blamed_timeout_ms = 300;
  std::uint64_t leaving_timeout_ms = 2'000;
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // --- events ---
  // The link works in both directions, or no longer. rekeys: it comes back with another cluster key.
  void on_connection_changed(Seat peer, bool up, std::uint64_t now_ms, bool rekeys = false);
  // The grace of a broken connection is over (DisconnectGrace). up_again: it is connected again, so it is not evicted.
  void on_link_lost(Seat peer, const std::string& message, bool up_again, std::uint64_t now_ms);
  void set_weight(Seat peer, std::uint16_t weight);  // from its hello, before it is connected
  void on_peer_lines(std::uint64_t now_ms);          // the list of nodes has changed
  // Waiting does not help with this peer: another build, another mesh, a wrong key. Repeated as long as it lasts; a
  // pending start that waits for the peer ends after kUnrecoverableMs, for the cause may be momentary.
  void on_incompatible_peer(Seat peer, const std::string& why, std::uint64_t now_ms);
  // A client's start, or with run.resume a resume. The caller draws the run key. AnswerStart answers with this token.
  void start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms);
  // Answers ListSavedStates. known_lineage: the newest lineage of the run that this node knows.
  void on_offer(std::uint64_t run_key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms);
  // Answers PrepareRun with this node's vote. names: its data files, to name the ones that differ.
  void on_prepared(
      std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms,
      const engine::EachName& names = [](const auto&) {});
  // A node has made progress in preparing the current run, or in looking for its states: both may take long.
  void on_prepare_progress(Seat seat, std::uint64_t now_ms);
  // Claim, Grant, Propose, Offer, Vote, Commit, Fail, Goodbye, Ended, and the frames of view changes and joins. Ignores
  // all others, and frames of unknown runs. A sender in an older view is sent the newest Decide.
  void on_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  // Any other frame, of a view that is not this node's.
  void on_stale_view(Seat from, std::uint64_t run_key, std::uint32_t view, std::uint64_t now_ms);
  // A heartbeat that is not of this node's view. own: what this node holds of that run.
  void on_heartbeat(Seat from, const schema::Heartbeat& beat, const Held& own, std::uint64_t now_ms);
  // Other nodes have an active run, which this node may join.
  void on_run_discovered(const std::string& run_id, std::uint64_t now_ms);
  // Answer QuiesceRun (repeatedly, while quiesced), ReadHistory, and ReceiveSnapshot (why: "" = it has the state).
  void on_quiesced(std::uint64_t run_key, std::uint64_t now_ms);
  void on_snapshot_offer(std::uint64_t run_key, schema::SnapshotOffer offer, std::uint64_t now_ms);
  void on_snapshot_done(std::uint64_t run_key, const std::string& why, std::uint64_t now_ms);
  // Answer Seal and WriteVote.
  void on_sealed(std::uint64_t run_key, const SealReport& report, std::uint64_t now_ms);
  void on_vote_written(std::uint64_t run_key, const std::string& problem, std::uint64_t now_ms);
  // This node's disk stands still: it cannot vote. Repeated as long as it lasts.
  void on_disk_problem(const std::string& why, std::uint64_t now_ms);
  // Liveness has lost a peer, or this node itself: peer == self.
  void on_peer_lost(Seat peer, const std::string& message, std::uint64_t now_ms);
  // A client's stop of the current run; an error if there is no such run. A PAUSED run ends INTERRUPTED for this node
  // alone: it may resume elsewhere.
  Status stop(const std::string& run_id, std::uint64_t now_ms);
  // A client's leave: this node leaves the current run, INTERRUPTED for it, once all members are quiesced; the others
  // lose no step. Error if it cannot; a run that ends first ends as it would.
  Status leave(std::uint64_t now_ms);
  void stay_out();  // stops asking to join
  // The run cannot go on at this node (kRunFailed: at no node), or has come to its end.
  void on_failed(const schema::Fail& cause, std::uint64_t now_ms);
  void on_finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms);  // STOPPED, COMPLETED
  // Answers SaveRun; again if the saved state changes later.
  void on_saved(std::uint64_t run_key, const schema::Ended& own, std::uint64_t now_ms);
  // A past run with a record here: this node answers queries about it, and asks members whose outcome is unknown.
  void add_past_run(std::uint64_t run_key, PastRun run);
  void set_aside(std::uint64_t run_key, PastRun run);  // the same run under the id that it has now
  // This node's vote in a run that had not ended when this process started: the other members may need it.
  void add_past_voter(VoterState vote, std::string run_id, std::uint32_t lineage = 1);
  // It has lost that vote: a member that asks for it is told why.
  void add_lost_vote(std::uint64_t run_key, std::string why) { lost_votes_[run_key] = std::move(why); }
  void on_stopping();  // the union of step flags says stop
  // The peer's last report is in: its loss has no effect any more.
  void on_peer_finished(Seat peer);
  // Shuts this node down: Goodbye goes to all. An active run ends INTERRUPTED for this node once the others have
  // decided on a view without it, or after ViewChange::kLeavingMs.
  void shut_down(std::uint64_t now_ms);
  void tick(std::uint64_t now_ms);

  // --- state ---
  std::vector<MembershipAction> take_actions();
  bool has_actions() const { return !out_.empty(); }
  bool idle() const { return current() == nullptr; }
  bool is_ahead(std::uint64_t run_key, std::uint32_t view) {  // see ViewChange
    const ViewChange* const change = change_of(run_key);
    return change != nullptr && change->is_ahead(view);
  }
  bool is_joining() const { return joiner_.has_reserved(); }
  // PENDING .. STOPPING or PAUSED of the current run; nothing when idle.
  std::optional<schema::RunState> state() const;
  // Why the current run is PAUSED, and the way out; "" if it is not.
  std::string pause_reason() const { return change_ ? change_->pause_reason(lifecycle_.run().id) : ""; }
  const View& view() const { return lifecycle_.view(); }  // the active run's
  const RunIdentity* current() const {
    return lifecycle_.is_active() ? &lifecycle_.run() : joiner_.has_reserved() ? &joiner_.run() : start_.current();
  }
  // The nodes that a pending start waits for.
  std::vector<Seat> awaited() const { return start_.waited_for(); }
  // The members of the newest view known here of a past run; all nodes if none is known.
  std::vector<std::string> voters_of(const std::string& run_id) const;

 private:
  struct PastVoter {  // this node's voter in a run that ended for this node alone
    std::string run_id;
    std::unique_ptr<ViewChange> change;
    std::uint32_t lineage = 1;
    std::uint32_t later_lineage = 0;  // that a member of a view known here is in; 0: none
  };
  // The number that this run's frames carry; a run that has not begun here is in its first view.
  std::uint32_t view_number(std::uint64_t run_key) const {
    return lifecycle_.is_run(run_key) ? lifecycle_.view().number() : View::kFirst;
  }
  ViewChange* change_of(std::uint64_t run_key);
  const ViewChange* voter_in(const std::string& run_id) const;
  bool is_key_of_another(std::uint64_t run_key, const std::string& run_id);
  bool knows(Seat peer, std::uint64_t run_key);  // as a member of a view of this run that is known here
  void know_members(const std::string& run_id, const std::vector<Seat>& members);
  bool trusts(Seat from, std::uint64_t run_key, const schema::Invite& invite, std::uint64_t now_ms);
  template <class Event>
  void for_each_change(Event event);
  void on_connected(Seat peer, std::uint64_t now_ms);
  void report_loss(Seat peer, ViewChange::Loss loss, const std::string& why, std::uint64_t now_ms);
  void report_lost_vote(const schema::FrameHeader& header, const schema::FrameBody& body);
  void run_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void join_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body, std::uint64_t now_ms);
  void advance(std::uint64_t now_ms);
  void advance_joining(std::uint64_t now_ms);
  void begin_admission();
  void retry_join(std::uint64_t now_ms);
  void ask_to_leave(std::uint64_t now_ms);
  void request_release(const std::string& why);
  bool is_stopping() const { return shut_down_ || lifecycle_.state() == schema::RunState::kStopping; }
  std::string leave_reason() const { return peers_.own_name() + " left on request"; }

  Peers peers_;
  Outbox out_;
  RunLifecycle lifecycle_;
  Start start_;
  const ViewChange::Self self_;
  std::unique_ptr<ViewChange> change_;               // the active run's
  std::optional<Admission> admission_;               // into the active run
  Joiner joiner_;                                    // into another run
  schema::Vote own_vote_;                            // in the run that was prepared last
  engine::EachName own_names_;                       // that vote's data files
  std::map<std::uint64_t, PastVoter> voters_;        // by run key
  std::map<std::string, Per<Seat, bool>> known_;     // by run id: members of all views that are known here
  std::map<std::uint64_t, std::string> lost_votes_;  // why, by run key
  bool quiesced_ = false;                            // the senior's last word, for a join or a leave
  bool stop_asked_ = false;                          // by a client of this node
  bool shut_down_ = false;
  std::uint64_t shut_down_ms_ = 0;                // when the shutdown began
  std::optional<std::uint64_t> ask_to_leave_ms_;  // the next request to leave, for a client
};

}  // namespace tg::daemon

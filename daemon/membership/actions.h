// The actions that membership has decided on, to be applied in order, and the outbox of its parts. Values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/outcome_sync.h"
#include "daemon/membership/run_identity.h"
#include "daemon/membership/run_outcome.h"
#include "daemon/membership/view.h"
#include "daemon/membership/voter.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct ListSavedStates {  // answer with on_offer(): the states of the run on this disk
  RunIdentity run;
};
// Answer with on_prepared(); frames of this view may come from now on. A resumed run begins at run.resume->start.
struct PrepareRun {
  RunIdentity run;
  View view;           // a joiner's: perhaps the next one
  bool joins = false;  // the run is active elsewhere: it begins here with JoinRun
};
struct BeginRun {  // all have committed
  RunIdentity run;
  ExchangeChoice choice;  // only the proposer knows why and the slowest link
};
struct DropRun {  // a reservation or a refused PENDING run: nothing is recorded
  std::uint64_t run_key = 0;
};
struct SaveRun {  // the run is over: save the committed state and answer with on_saved()
  std::uint64_t run_key = 0;
  std::string id;
  schema::RunState state = schema::RunState::kFailed;
  std::string reason;
};
struct EndRun {  // record the end; also of a PENDING run that never found its members
  std::uint64_t run_key = 0;
  std::string id;
  schema::RunState state = schema::RunState::kFailed;
  std::string reason;
  RunOutcome end = {};
  bool by_user = false;  // a user had this node leave: it does not rejoin by itself
};
struct AnswerStart {  // to the client that asked for a start or a resume
  std::uint64_t token = 0;
  std::string run_id;
  Status status;                // ok: the run is RUNNING
  std::uint64_t from_step = 0;  // then, of a resume
};
struct RestartProposal {  // the proposal is withdrawn: start it again, with another run key
  std::uint64_t token = 0;
  RunIdentity run;
};
struct RequestStop {  // set the stop flag in the next step frame
  std::uint64_t run_key = 0;
};
// --- a view change (view_change.h) ---

// The run commits nothing more in its view. Answer with on_sealed() before any other event: the committed step is read
// in the same call.
struct Seal {
  std::uint64_t run_key = 0;
};
// Write the vote and sync it, then answer with on_vote_written(): a run has one WriteVote without an answer at most.
// With a ballot the run commits nothing more from now on, as after Seal. Also for runs that are not the current one.
struct WriteVote {
  std::uint64_t run_key = 0;
  VoterState vote;
};
// The run continues in this view from next.start: a member that is one step ahead undoes it, one at the start confirms
// it. next.waits: the first step begins after ViewChange::kFirstStepDelayMs.
struct InstallView {
  std::uint64_t run_key = 0;
  schema::NextView next;
  ChangeTimes times;
};
// The run continues without this node; SaveRun follows. A node that is one step ahead of next.start undoes it, so that
// all that leave with this view have one state.
struct LeaveView {
  std::uint64_t run_key = 0;
  schema::NextView next;
};
// --- a join (admission.h, joiner.h) ---

// At the senior: set the quiesce flag in the next step frame; answer with on_quiesced() once all members are.
struct QuiesceRun {
  std::uint64_t run_key = 0;
};
struct ReadHistory {  // answer with on_snapshot_offer()
  std::uint64_t run_key = 0;
};
struct SendSnapshotChunks {
  std::uint64_t run_key = 0;
  Seat to;
  schema::SnapshotRequest want;
};
struct NoteJoin {  // for people: a join's progress, or why it is refused
  std::uint64_t run_key = 0;
  std::string what;
  bool is_hint = false;  // what a node of no known view says
};
struct ReleaseRun {  // the quiesced members begin the next step
  std::uint64_t run_key = 0;
  std::string why = {};
};
// At a prepared joiner: fetch the snapshot from this donor; answer with on_snapshot_done() once it is whole and its
// digest right.
struct ReceiveSnapshot {
  std::uint64_t run_key = 0;
  Seat from;
  std::uint32_t view = 0;  // the donor's
  schema::SnapshotOffer feed;
};
struct JoinRun {  // this view has this node, and begins with the snapshot
  RunIdentity run;
  schema::Commit choice;
  schema::NextView next;
};
using MembershipAction =
    std::variant<SendFrame, ListSavedStates, PrepareRun, BeginRun, DropRun, SaveRun, EndRun, RecordEnd, AnswerStart,
                 RestartProposal, RequestStop, Seal, WriteVote, InstallView, LeaveView, QuiesceRun, ReadHistory,
                 SendSnapshotChunks, NoteJoin, ReleaseRun, ReceiveSnapshot, JoinRun>;

class Outbox {
 public:
  void emit(MembershipAction action) { actions_.push_back(std::move(action)); }
  void send(std::vector<Seat> to, std::uint64_t run_key, std::uint32_t view, schema::FrameBody body) {
    if (!to.empty()) emit(SendFrame{std::move(to), schema::FrameHeader{run_key, view, 0}, std::move(body)});
  }
  bool empty() const { return actions_.empty(); }
  std::vector<MembershipAction> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<MembershipAction> actions_;
};

}  // namespace tg::daemon

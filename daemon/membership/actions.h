// What membership has decided: actions, to be carried out in order; and where its parts put them. Values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/membership/aftermath.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/membership/run_end.h"
#include "daemon/membership/run_identity.h"
#include "daemon/membership/view.h"
#include "daemon/membership/voter.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

struct FindStates {  // answer with offered(): what this disk has of the run that is to go on
  RunIdentity run;
};
// Answer with prepared(); the run's exchange may buffer frames of this view from now on. A run that goes on begins at
// run.resume->start.
struct PrepareRun {
  RunIdentity run;
  View view;           // joins: the next one, perhaps
  bool joins = false;  // it is on without this node: it begins with JoinRun, and nobody waits for it before
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
  bool by_order = false;  // a user had this node leave it: it does not come into it by itself
};
struct AnswerStart {  // to the client that asked for a start, or for a resume
  std::uint64_t token = 0;
  std::string run_id;
  Status status;                // ok: the run is RUNNING
  std::uint64_t from_step = 0;  // then, of one that goes on
};
struct StartAnew {  // nobody has the proposal any more: start it again, with another key
  std::uint64_t token = 0;
  RunIdentity run;
};
struct AskStop {  // set the stop flag in the next step frame
  std::uint64_t key = 0;
};
// --- a view change (view_change.h) ---

// The run commits nothing in its view from now on, whatever else waits to be handled. Answer with stands() before any
// other event: what is committed is read in the same breath.
struct Freeze {
  std::uint64_t key = 0;
};
// On disk, synced, before the answer voted(). Also of runs that are not the current one. Answers come in this order.
struct WriteVote {
  std::uint64_t key = 0;
  VoterState vote;
};
// The run goes on in this view, from next.start: who is a step ahead goes back, who stands there confirms it.
// next.waits: with the first step after kGraceMs only (ViewChange).
struct InstallView {
  std::uint64_t key = 0;
  schema::NextView next;
  ChangeTimes times;
};
// The run goes on without this node; SaveRun follows. Who is a step ahead of next.start goes back, so that all who left
// at that time have one state.
struct LeaveView {
  std::uint64_t key = 0;
  schema::NextView next;
};
// --- a node comes into a run that is on (admission.h, joining.h) ---

// As a member. HoldRun: set the hold flag in the next step frame; answer with held() once all members are held.
struct HoldRun {
  std::uint64_t key = 0;
};
struct ReadPast {  // answer with feeds(): what the newcomer is given
  std::uint64_t key = 0;
};
struct SendSlices {
  std::uint64_t key = 0;
  Seat to;
  schema::Want want;
};
struct NoteHold {  // for people: how far it is, or why not now
  std::uint64_t key = 0;
  std::string what;
};
struct GoOn {  // nobody joins: with the next step
  std::uint64_t key = 0;
  std::string why = {};
};
// As the newcomer, prepared: ask this member for slices; answer with fed() once the state is whole and its digest
// right.
struct TakeFeed {
  std::uint64_t key = 0;
  Seat from;
  std::uint32_t view = 0;  // of the members
  schema::Feed feed;
};
struct JoinRun {  // this view has this node, and begins with the state that was fed
  RunIdentity run;
  schema::Commit choice;
  schema::NextView next;
};
using MembershipAction = std::variant<SendFrame, FindStates, PrepareRun, BeginRun, DropRun, SaveRun, EndRun, RecordEnd,
                                      AnswerStart, StartAnew, AskStop, Freeze, WriteVote, InstallView, LeaveView,
                                      HoldRun, ReadPast, SendSlices, NoteHold, GoOn, TakeFeed, JoinRun>;

class Outbox {
 public:
  void emit(MembershipAction action) { actions_.push_back(std::move(action)); }
  void send(std::vector<Seat> to, std::uint64_t key, std::uint32_t view, schema::FrameBody body) {
    if (!to.empty()) emit(SendFrame{std::move(to), schema::FrameHeader{key, view, 0}, std::move(body)});
  }
  bool empty() const { return actions_.empty(); }
  std::vector<MembershipAction> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<MembershipAction> actions_;
};

}  // namespace tg::daemon

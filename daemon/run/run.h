// A run's life on this node: what lasts for the run (who it is, the compute thread, the journal of its news, the keeper
// of its states) and what lasts for a view (RunView). Node's thread; the compute thread and the helpers post their
// events to the node, which hands them straight to the view's member.
//
//   Candidate: prepared, link measured -> vote;  begin -> the member's steps and reports ... -> finished or failed
//   -> begin_save ... context.tell.saved() -> ended: the verdict is recorded
//   where the commit has other weights than it was prepared for: begin -> fitted -> the first view's steps
//   where the members change: freeze -> change_view -> fitted -> the next view's steps
//   where it is on without this node: prepared -> receive_snapshot, slices -> join -> fitted -> the next view's steps
//
// It decides nothing about membership: outcomes (failed, stopping, finished) are taken by the Node and told to
// Membership.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/membership/run_identity.h"
#include "daemon/membership/run_outcome.h"
#include "daemon/membership/voter.h"
#include "daemon/run/candidate.h"
#include "daemon/run/first_record.h"
#include "daemon/run/journal.h"
#include "daemon/run/keeper.h"
#include "daemon/run/preparation_options.h"
#include "daemon/run/run_context.h"
#include "daemon/run/run_view.h"
#include "daemon/step/snapshot.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_record.h"
#include "engine/storage/atomic_file.h"
#include "schema/options/job.h"

namespace tg::daemon {

class Run {
 public:
  // start: of a run that is resumed. joins: one that is on without this node; view is then what the next one may be.
  Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view,
      std::optional<SavedStart> start = {}, bool joins = false);
  ~Run();

  // --- before it begins ---
  void prepared(Result<std::shared_ptr<const PreparedView>> result);
  // It takes the probe's answers and makes the vote.
  Candidate& candidate() { return candidate_; }
  Status begin(const schema::Commit& choice);

  // --- while it goes on ---
  RunView& view() { return *view_; }
  // What its thread may do now, between two events.
  bool work() { return goes_on() && view_->work(); }
  Waiting waiting() { return goes_on() ? view_->member().waiting() : Waiting{}; }
  void request_stop();
  void tick();

  // --- a change of its members. Begun, and not saving ---
  // From now on nothing is committed in this view. What it returns tells of the state in memory. Said as often as it is
  // asked for.
  FreezeReport freeze();
  // Frozen: the next view takes up the run where these rounds are committed, with this node. Its frames may come from
  // now on. why: the view before ended, for people; "" = what the two lists say. An error says why this node cannot go
  // on as a member of it.
  Status change_view(View next, Round start, const std::string& why = "");
  // The engine has its share of that view, or not: its first step begins, or an error as above. Of an earlier view
  // nothing.
  Status fitted(std::uint32_t view, Result<std::shared_ptr<const PreparedView>> result);

  // --- a newcomer. The members are held ---
  void request_quiesce();
  bool quiesced() { return goes_on() && view_->begun() && view_->member().quiesced(); }
  // What they wait for, which is progress. Then, or at any time before: they go on.
  void note_join(const std::string& what);
  void release();
  // As the giver. read_past() is answered by context.tell.past_read(), and that begins the feed.
  void read_past();
  schema::SnapshotOffer begin_snapshot(std::string views);
  void send_snapshot_chunks(Seat to, const schema::SnapshotRequest& want);
  // As the newcomer, prepared: from whom. An error ends the join; no news: the state is not whole yet.
  Status receive_snapshot(Seat from, std::uint32_t view, const schema::SnapshotOffer& feed);
  Status on_snapshot_chunk(Seat from, const schema::SnapshotChunk& slice, std::uint64_t now_ms);
  void request_chunks(std::uint64_t now_ms);
  bool has_snapshot() const { return snapshot_sink_ && snapshot_sink_->whole(); }
  // Whether what was fed is the state that was promised; takes as long as reading it.
  Status check_snapshot() const;
  // Fed: a member of that view, which begins with this state. Its frames may come from now on. Errors as of begin().
  Status join(View view, const schema::Commit& choice, const std::string& why);

  // Too few members are there to go on: why, and the way out; "" = that is over.
  void pause(const std::string& why);
  // The others go on without this node, from these rounds: if it stands there, or one ahead, that is its state.
  void leave(Round start);

  // --- its end ---
  // No step is taken any more. Writes the confirmed state and what a crash from then on leaves, on the saver's thread;
  // context.tell.saved() tells.
  void begin_save(schema::RunState state, const std::string& reason);
  Keeper& keeper() { return keeper_; }
  void checkpointed(const CheckpointWritten& outcome);

  // --- state ---
  std::uint64_t number() const { return number_; }  // of this object, as in RunPrepared
  const RunIdentity& identity() const { return identity_; }
  const schema::JobSpec& job() const { return job_; }
  bool begun() const { return choice_.has_value(); }
  bool goes_on() const { return begun() && !keeper_.saving(); }
  std::size_t left() const { return journal_.status().departed.size(); }  // former members
  engine::ModelOptions model() const;                                     // of its data. Prepared
  // What this choice means: facts, no predictions. Prepared.
  schema::StartReply facts(const schema::Commit& choice) const;
  // Adds pictures of the first training samples; reads their files. Prepared.
  Status show_data(schema::StartReply& reply) const;

 private:
  Status enter(const schema::Commit& choice);
  RunView::Parts parts();
  Beginning beginning(const schema::StartReply& facts) const;
  schema::RunStatus first_status(const schema::StartReply& facts) const;
  RunRecord first_record(const schema::StartReply& facts) const;
  Status check_memory_of(const schema::StartReply& facts, bool& copies) const;
  bool evaluates_first() const;
  bool is_evaluated(std::uint64_t step) const;
  Status unfit(const Error& error);
  void log_beginning(const schema::StartReply& facts) const;
  void read_digests();

  const RunContext& context_;
  const std::uint64_t number_;
  const RunIdentity identity_;
  schema::JobSpec job_;  // prepared: its steps are those of its epochs
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();  // shared with their threads
  Journal journal_;
  Keeper keeper_;
  bool lacks_checkpoint_ = false;  // the last one that was due, and its reason says so
  Candidate candidate_;
  std::shared_ptr<const Prepared> prepared_;
  std::shared_ptr<const PreparedView> fitted_;       // for the present view
  std::optional<SavedStart> start_;                  // of a run that is resumed, or joined
  std::unique_ptr<SnapshotSource> snapshot_source_;  // as a giver
  std::unique_ptr<SnapshotSink> snapshot_sink_;      // as a newcomer
  std::unique_ptr<engine::AtomicFile> fed_metrics_;
  Seat donor_;
  std::uint32_t donor_view_ = 0;
  std::optional<schema::Commit> choice_;  // once it has begun
  std::string unfit_;                     // why this node cannot go on as a member; "" if it can
  std::unique_ptr<Trainer> trainer_;      // its thread goes before what it uses
  std::optional<RunView> view_;           // the present one. Last: its helpers read the trainer's gradients
};

}  // namespace tg::daemon

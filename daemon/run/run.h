// A run on this node: the parts that last for the run (identity, compute thread, run reporter, checkpointer), and the
// part that lasts for a view (RunView). Node's thread; the compute thread and the helpers post their events to the
// node, which passes them straight to the view's member.
//
//   RunPreparation: prepared, link measured -> vote;  begin -> the member's steps and reports ... -> finished or failed
//   -> begin_save ... context.hooks.on_saved() -> the outcome is recorded
//   the commit's weights differ from the prepared ones: begin -> on_rebuilt -> the first view's steps
//   the members change: seal -> change_view -> on_rebuilt -> the next view's steps
//   this node joins: on_prepared -> receive_snapshot, chunks -> join -> on_rebuilt -> the next view's steps
//
// The run decides nothing about membership: the Node reports its outcomes (failed, stopping, finished) to Membership.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/membership/run_identity.h"
#include "daemon/membership/run_outcome.h"
#include "daemon/membership/voter.h"
#include "daemon/run/checkpointer.h"
#include "daemon/run/first_record.h"
#include "daemon/run/preparation_options.h"
#include "daemon/run/run_context.h"
#include "daemon/run/run_preparation.h"
#include "daemon/run/run_reporter.h"
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
  // start: the state of a resumed run. joins: the run is active without this node; view is then the expected next one.
  Run(const RunContext& context, RunIdentity identity, schema::JobSpec job, View view,
      std::optional<SavedStart> start = {}, bool joins = false);
  ~Run();

  // --- before it begins ---
  void on_prepared(Result<std::shared_ptr<const PreparedView>> result);
  // Takes the probe's answers and makes the vote.
  RunPreparation& preparation() { return preparation_; }
  Status begin(const schema::Commit& choice);

  // --- during the run ---
  RunView& view() { return *view_; }
  // Executes one task between two events; false if there is none.
  bool work() { return is_active() && view_->work(); }
  Waiting waiting() { return is_active() ? view_->member().waiting() : Waiting{}; }
  void request_stop();
  void tick();

  // --- a view change. The run has begun, and is not saving ---
  // Commits nothing more in this view, and reports the state in memory. Idempotent.
  SealReport seal();
  // Continues the sealed run in the next view from these committed rounds, and accepts its frames. why: the reason of
  // the change, for people; "" = the difference of the members. An error says why this node cannot be a member.
  Status change_view(View next, Round start, const std::string& why = "");
  // The engine for that view's share is ready, or failed: begins the first step, or returns an error as above. Ignored
  // if the view has changed.
  Status on_rebuilt(std::uint32_t view, Result<std::shared_ptr<const PreparedView>> result);

  // --- a join. The members are quiesced ---
  void request_quiesce();
  bool quiesced() { return is_active() && view_->begun() && view_->member().quiesced(); }
  // note_join() shows what the members wait for, and counts as progress; release() lets them continue.
  void note_join(const std::string& what);
  void show_note(const std::string& what) { reporter_.set_note(what); }
  void release();
  // The donor: read_history() ends with context.hooks.on_history_read(), after which the snapshot begins.
  void read_history();
  schema::SnapshotOffer begin_snapshot(const HistoryRead& history);
  void send_snapshot_chunks(Seat to, const schema::SnapshotRequest& request);
  // The joiner, once prepared. from: the donor. An error ends the join.
  Status receive_snapshot(Seat from, std::uint32_t view, const schema::SnapshotOffer& offer);
  Status on_snapshot_chunk(Seat from, const schema::SnapshotChunk& chunk, std::uint64_t now_ms);
  void request_chunks(std::uint64_t now_ms);
  bool has_snapshot() const { return snapshot_sink_ && snapshot_sink_->whole(); }
  // Checks the digest of the received state; takes as long as reading it.
  Status check_snapshot() const;
  // Becomes a member of that view, which begins with the received state, and accepts its frames. Errors: see begin().
  Status join(View view, const schema::Commit& choice, const std::string& why);

  // Pauses the run without a quorum. why: the reason and the remedy; "" = the run continues.
  void pause(const std::string& why);
  // The others continue without this node from these rounds: if it is there, or one ahead, it keeps that state.
  void leave(Round start);

  // --- the end ---
  // Takes no more steps. The saver's thread writes the confirmed state and the artefacts; context.hooks.on_saved()
  // follows.
  void begin_save(schema::RunState state, const std::string& reason);
  Checkpointer& checkpointer() { return checkpointer_; }
  void on_checkpoint_written(const CheckpointWritten& outcome);

  // --- state ---
  std::uint64_t number() const { return number_; }  // this object's, as in RunPrepared
  const RunIdentity& identity() const { return identity_; }
  const schema::JobSpec& job() const { return job_; }
  bool begun() const { return choice_.has_value(); }
  bool is_active() const { return begun() && !checkpointer_.is_saving(); }
  std::size_t departed_count() const { return reporter_.status().departed.size(); }  // former members
  std::uint64_t confirmed_step() const { return prepared_->replica->confirmed_rounds().value(); }
  engine::ModelOptions model() const;  // for its data. Prepared
  // Returns the facts that follow from this choice, without predictions. Prepared.
  schema::StartReply facts(const schema::Commit& choice) const;
  // Adds pictures of the first training samples; reads their files. Prepared.
  Status show_data(schema::StartReply& reply) const;

 private:
  Status record_beginning(const schema::Commit& choice);
  RunView::Parts parts();
  RunBeginning beginning(const schema::StartReply& facts) const;
  schema::RunStatus first_status(const schema::StartReply& facts) const;
  RunRecord first_record(const schema::StartReply& facts) const;
  Status check_memory_of(const schema::StartReply& facts, bool& copies) const;
  bool evaluates_first() const;
  bool is_evaluated(std::uint64_t step) const;
  Status mark_unfit(const Error& error);
  void log_beginning(const schema::StartReply& facts) const;
  std::optional<std::uint64_t> read_digest() const;

  const RunContext& context_;
  const std::uint64_t number_;
  const RunIdentity identity_;
  schema::JobSpec job_;                                                      // prepared: its steps are set
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();  // shared with the threads
  RunReporter reporter_;
  Checkpointer checkpointer_;
  bool checkpoint_failed_ = false;  // the last one failed, and the note says so
  RunPreparation preparation_;
  std::shared_ptr<const Prepared> prepared_;
  std::shared_ptr<const PreparedView> prepared_view_;  // for the current view
  std::optional<SavedStart> start_;                    // the run was resumed or joined
  std::unique_ptr<SnapshotSource> snapshot_source_;    // the donor's
  std::unique_ptr<SnapshotSink> snapshot_sink_;        // the joiner's
  std::unique_ptr<engine::AtomicFile> received_metrics_;
  Seat donor_;
  std::uint32_t donor_view_ = 0;
  std::optional<schema::Commit> choice_;  // set by begin() or join()
  std::string unfit_;                     // why this node cannot be a member; "" = it can
  std::unique_ptr<Trainer> trainer_;      // its thread ends before what it uses
  std::optional<RunView> view_;           // the current one. Last: its helpers read the trainer's gradients
};

}  // namespace tg::daemon

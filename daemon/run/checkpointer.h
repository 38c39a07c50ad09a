// The checkpointer saves a run's states on this node's disk: the run's record, checkpoints during training, and at the
// end the last state with the artefacts. It copies or reads the confirmed state on the node's thread, and writes on the
// saver's. Lasts for the run. Node's thread.
//
//   begin -> (write_checkpoint ... on_checkpoint_written) ... -> begin_save ... on_saved -> ended
//
// A checkpoint is written from a copy. Without memory for one, the state itself is read, and training pauses until it
// is written: must_pause(). It pauses as well while the disk has not written the previous one: each member keeps every
// state that was requested of all, so that all have one in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/membership/run_outcome.h"
#include "daemon/run/run_context.h"
#include "daemon/step/threads/timeline.h"
#include "daemon/store/line_file.h"
#include "daemon/store/run_record.h"
#include "schema/options/job.h"

namespace tg::daemon {

class Checkpointer {
 public:
  Checkpointer(const RunContext& context, std::uint64_t run_key, const schema::JobSpec& job)
      : context_(context), run_key_(run_key), job_(job) {}

  // Writes the record. copies: there is memory for the copy of a checkpoint.
  Status begin(RunRecord first, std::shared_ptr<const Prepared> prepared, bool copies);

  // A joiner calls this before begin(): the run's past as the donor has it, and the view that ended with the join.
  void set_history(std::string views, ViewInterval before) { history_ = {std::move(views), std::move(before)}; }

  // --- during the run ---
  // Returns the record as it would be written now.
  RunRecord record_with(const schema::RunStatus& status) const;
  // Uses this node's clock. The member of the lowest rank then requests a checkpoint of all.
  bool is_checkpoint_due() const;
  // All members have committed this state, and nothing of the next step has been applied; must_pause() keeps it so.
  // metrics is flushed to the disk before the checkpoint.
  void write_checkpoint(const schema::StateId& state, const schema::RunStatus& status,
                        const std::shared_ptr<LineFile>& metrics);
  // Ends the interval of the previous view, with these words, and begins that of the next. The saver's thread writes.
  struct NextView {
    std::uint32_t number = 0;
    std::vector<std::string> member_names;  // by rank
    std::vector<std::uint16_t> weights;     // by rank
    schema::StateId from;                   // the view's first state
  };
  void on_view_changed(const schema::RunStatus& status, const NextView& next, const std::string& ended);
  // Returns the id of a confirmed state. The state between two views is always named as the last of the earlier one.
  schema::StateId state_id(std::uint64_t step, std::uint64_t digest) const;
  // The engine for the current view is ready; copies: see begin().
  void on_rebuilt(const PreparedView& view, bool copies);
  // Returns why the checkpoint was not written; nothing if it was.
  std::optional<std::string> on_checkpoint_written(const CheckpointWritten& outcome);
  // Whether the tasks of this step have to wait: its commit would replace the state that is being read, or is still to
  // be copied, and move its average.
  bool must_pause(std::uint64_t step) const {
    return (writing_step_ && !copies_ && step >= *writing_step_) || (queued_ && step >= queued_->state.step);
  }

  // --- the end ---
  // status is that of the replica's confirmed state. ahead: the status of the commit that was undone for it, if any.
  void begin_save(const schema::RunStatus& status, const std::optional<schema::RunStatus>& ahead,
                  std::shared_ptr<LineFile> metrics, const std::shared_ptr<Timeline>& timeline);
  bool is_saving() const { return saving_; }
  bool is_writing() const { return saving_ && !saved_; }
  // Returns the outcome that this member sends to the others.
  schema::Ended outcome(schema::SaveState save, const std::string& problem) const;
  void on_saved(const RunSaved& outcome);
  // The record with the run's outcome. A state that no member could save stays in memory.
  RunRecord ended(const RunOutcome& end);

 private:
  using Clock = std::chrono::steady_clock;

  const RunContext& context_;
  const std::uint64_t run_key_;
  const schema::JobSpec& job_;
  RunRecord record_;
  schema::StateId lineage_from_;  // the first state of this lineage
  std::shared_ptr<const Prepared> prepared_;
  bool copies_ = true;
  std::optional<std::pair<std::string, ViewInterval>> history_;  // a joiner's
  Clock::time_point last_checkpoint_{};
  struct QueuedCheckpoint {
    schema::StateId state;
    schema::RunStatus status;
    std::shared_ptr<LineFile> metrics;
  };
  std::optional<std::uint64_t> writing_step_;  // the step of the checkpoint in progress
  std::optional<QueuedCheckpoint> queued_;     // the checkpoint after it
  bool saving_ = false, saved_ = false;
  std::shared_ptr<const Artefacts> unsaved_;  // the last state, if it could not be saved
};

}  // namespace tg::daemon

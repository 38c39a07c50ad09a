// What a run leaves on this node's disk: its record, checkpoints beside training, and at its end the last state with
// the artefacts. It copies or reads the confirmed state on the node's thread, and writes on the saver's. Lasts for the
// run. Node's thread.
//
//   begin -> (write_checkpoint ... checkpointed) ... -> begin_save ... saved -> ended
//
// A checkpoint is written from a copy. Where there is no memory for one, the state itself is read, and training holds
// until it is written: holds(). So it does where the disk has not written the one before: each member keeps every state
// that all were asked for, so that all have one in common.
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

class Keeper {
 public:
  Keeper(const RunContext& context, std::uint64_t key, const schema::JobSpec& job)
      : context_(context), key_(key), job_(job) {}

  // Writes the record. copies: there is memory for the copy of a checkpoint.
  Status begin(RunRecord first, std::shared_ptr<const Prepared> prepared, bool copies);

  // Before begin(), of a newcomer: what a member has of the run's past, and the view that ended with the join.
  void joins(std::string views, ViewInterval before) { past_ = {std::move(views), std::move(before)}; }

  // --- while it goes on ---
  // The record as it would be written now.
  RunRecord record_with(const schema::RunStatus& status) const;
  // By this node's clock: the member of the lowest rank asks all for one then.
  bool checkpoint_is_due() const;
  // All members have committed this state, and nothing of the step after it has been applied: holds() it from now on.
  // metrics: on the disk before it.
  void write_checkpoint(const schema::StateId& state, const schema::RunStatus& status,
                        const std::shared_ptr<LineFile>& metrics);
  // Another view goes on: the interval of the one before ends there, with these words. Written by the saver's thread.
  struct NextView {
    std::uint32_t number = 0;
    std::vector<std::string> member_names;  // by rank
    std::vector<std::uint16_t> weights;     // the same
    schema::StateId from;                   // what it begins with
  };
  void change_view(const schema::RunStatus& status, const NextView& next, const std::string& ended);
  // The name of a confirmed state. What a view begins with is the last state of the one before, whoever saves it when.
  schema::StateId name_of(std::uint64_t step, std::uint64_t digest) const;
  // What computes in it here; copies: as of begin().
  void fitted(const PreparedView& view, bool copies);
  // Why the last one was not written; nothing if it was.
  std::optional<std::string> checkpointed(const CheckpointWritten& outcome);
  // The work of this step has to wait: with its commit the state that is being read, or is to be copied yet, would no
  // longer be the committed one, and its average would move.
  bool holds(std::uint64_t step) const {
    return (writes_ && !copies_ && step >= *writes_) || (due_ && step >= due_->state.step);
  }

  // --- its end ---
  // The state of `status` is the replica's confirmed one. ahead: of the commit that it has undone for that, if any.
  void begin_save(const schema::RunStatus& status, const std::optional<schema::RunStatus>& ahead,
                  std::shared_ptr<LineFile> metrics, const std::shared_ptr<Timeline>& timeline);
  bool saving() const { return saving_; }
  bool writes_state() const { return saving_ && !saved_; }  // the last one
  // What this member tells the others then.
  schema::Ended own_end(schema::SaveState save, const std::string& problem) const;
  void saved(const RunSaved& outcome);
  // The verdict: records it. A state that nobody could save stays in memory.
  Status ended(const RunOutcome& end);

 private:
  using Clock = std::chrono::steady_clock;

  const RunContext& context_;
  const std::uint64_t key_;
  const schema::JobSpec& job_;
  RunRecord record_;
  schema::StateId lineage_from_;  // what all its views began with
  std::shared_ptr<const Prepared> prepared_;
  bool copies_ = true;
  std::optional<std::pair<std::string, ViewInterval>> past_;  // of a newcomer
  Clock::time_point checkpointed_{};
  struct Due {
    schema::StateId state;
    schema::RunStatus status;
    std::shared_ptr<LineFile> metrics;
  };
  std::optional<std::uint64_t> writes_;  // the checkpoint of that step, now
  std::optional<Due> due_;               // the next one, once that is written
  bool saving_ = false, saved_ = false;
  std::shared_ptr<const Artefacts> unsaved_;  // of the last state, if it could not be saved
};

}  // namespace tg::daemon

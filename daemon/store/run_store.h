// The store of runs on disk: state-dir/runs/ID/{run.json, metrics.jsonl, views.jsonl, log.txt, model.safetensors,
// model-raw.safetensors, state.safetensors, checkpoint-LINEAGE-VIEW-STEP.safetensors}. A record is written atomically
// when a run begins or is resumed, with every checkpoint, and when it ends. At start the record of every active run
// becomes INTERRUPTED: the process died during that run, which can be resumed from its saved states. Ended runs beyond
// the configured bounds (retention.h) are deleted and reported; INTERRUPTED is no end. Any thread may call: one lock
// guards the memory, another one the writers, so that a status never waits for a disk. One process per state-dir
// (state-dir/lock).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/artefacts.h"
#include "daemon/store/recovery_points.h"
#include "daemon/store/retention.h"
#include "daemon/store/run_files.h"
#include "daemon/store/run_index.h"
#include "daemon/store/run_record.h"
#include "daemon/store/unsaved_states.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::daemon {

struct Retention {
  RetentionLimits limits;
  std::function<void(const Deletion&)> deleted = [](const Deletion&) {};  // called on any thread
};

class RunStore {
 public:
  // Creates the directories and loads the runs; records that cannot be read are reported in `warnings` and left alone.
  static Result<std::unique_ptr<RunStore>> open(const std::string& state_dir, const std::string& node,
                                                std::vector<std::string>& warnings, Retention retention = {});
  // Writes a record to disk and memory. When the run has ended, its interval goes into views.jsonl, and that file's
  // hash into the record. A record with a new lineage or view of a known run begins its next interval. The record of a
  // start that never began does not replace that of a run that has begun.
  Status write(const RunRecord& record);
  // This node joins an active run: replaces what was known of the run here by its record and its past as a member has
  // it (views.jsonl, and the interval that ends there).
  Status join(const RunRecord& record, const std::string& views, const ViewInterval& ended);
  // Another lineage of the run contradicts this node's: it becomes a run of its own, ID-KEY, which does not resume by
  // itself. Returns its record.
  Result<RunRecord> set_aside(const std::string& id, std::uint64_t key, const std::string& why);
  // The run continues in its next view: writes a line for the interval that ended, and the new record. The status shown
  // stays the same. Called by the thread that writes the run's states.
  Status change_view(const RunRecord& next, const ViewInterval& ended);
  // Writes a record to disk only, for recovery after a crash; the status shown stays the same. Called by the thread
  // that writes the run's states; a record with a final state is its last write.
  Status persist(const RunRecord& record);
  // Changes the record of an ended run, in memory and then on disk. False if no ended run has that key; the earlier
  // keys of a run are not known any more.
  bool amend(std::uint64_t key, const std::function<void(RunRecord&)>& change);
  // The same for the mark of a person's order, which counts from the call on; rewrite() brings it to the disk.
  void mark_left(std::uint64_t key, bool left);
  void rewrite(std::uint64_t key);
  // Shows the record of a run that ended before it is on the disk, which stands still.
  void show_ended(const RunRecord& record) { index_.put(record, {.record = false}); }
  std::vector<RunRecord> records() const;  // all runs that have begun
  // Keeps the state of an ended run that could not be saved: its files are read from memory until the run is deleted or
  // the disk has room (save_unsaved). Neither reading nor retention drops it. alive: keeps the memory that the images
  // read.
  void hold_in_memory(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive,
                      std::uint64_t bytes) {
    unsaved_.keep(id, std::move(artefacts), std::move(alive), bytes);
  }
  using Unsaved = UnsavedStates::Summary;
  Unsaved unsaved() const { return unsaved_.summary(); }
  // Retries to write the unsaved states; returns the keys of the runs whose state is on the disk now.
  std::vector<std::uint64_t> save_unsaved();
  // Sets the status shown of the active run, in memory only. A run without a record is remembered until forget() or
  // write(). A final state is shown only from write() on, since clients fetch the run's files as soon as they see it.
  void update(const schema::RunStatus& status) { index_.update(status); }
  // Shows a resume of this ended run, in memory only: update() applies to the resume until write() or forget(). The
  // run's record and files stay as they are and can be fetched.
  void show_resuming(const std::string& id) { index_.show_resuming(id); }
  // Sets the next action that status shows for this ended run until it is resumed, in memory only.
  void show_next(const std::string& id, const std::string& next) { index_.show_next(id, next); }
  // The recovery points of an ended run (recovery_points.h). Reads all state files, so not on the node's thread.
  // kNotFound if the run has no record here. The caller calls save_unsaved() first, for a state that is only in memory.
  Result<RecoveryPoints> recovery_points(
      const std::string& id, const std::function<void()>& advance = [] {}) const;
  // Deletes an ended or interrupted run with all its files, and returns the bytes freed. kNotFound if there is no such
  // run, kRefused while it is active. The vote in an interrupted run is kept, for its end is not known.
  Result<std::uint64_t> remove(const std::string& id);
  // The members that have not reported how an interrupted run ended for them, if this node votes in it.
  std::vector<std::string> voters_in_doubt(const std::string& id) const;
  Status check_directory(std::uint64_t id) const { return files_->check_directory(id); }
  std::string vote_directory(const std::string& id) const { return files_->vote_directory(id); }
  std::vector<EndedRun> kept_votes() const { return files_->kept_votes(); }
  void delete_vote(const std::string& id) { files_->delete_vote(id); }
  // Records that the run's model was fetched, here or from another member.
  Status mark_fetched(const std::string& id);
  void delete_expired();  // applies retention; each write() does so too
  // Forgets a failed start, or a failed resume of a run.
  void forget(const std::string& id) { index_.forget(id); }
  std::optional<RunRecord> find(const std::string& id_or_unique_prefix) const {
    return index_.find(id_or_unique_prefix);
  }
  // The record as it was written, even while a resume of the run is shown. Takes the whole id.
  std::optional<RunRecord> recorded(const std::string& id) const { return index_.written(id); }
  // Resolves an exact id, or else a unique prefix; errors: no match (kNotFound), or several (kUsage).
  Result<std::string> resolve(const std::string& id_or_prefix) const { return index_.resolve(id_or_prefix); }
  // All statuses, newest first; members has a row for every member, filled for this node only; for an ended run it has
  // the steps of the recovery points.
  std::vector<schema::RunStatus> statuses() const { return index_.statuses(); }
  // The lines of views.jsonl, with those that the disk has no room for.
  std::string history(const std::string& id);
  std::string directory(const std::string& id) const { return files_->directory(id); }
  bool exists(const std::string& id) const;
  // A slice of one of the run's files; unknown file names are refused, so no path leaves the run's directory.
  Result<schema::SliceReply> read_slice(const std::string& id, const std::string& file, std::uint64_t offset,
                                        std::size_t most_bytes) const;

 private:
  RunStore(std::unique_ptr<RunFiles> files, std::string node, Retention retention)
      : files_(std::move(files)),
        node_(std::move(node)),
        retention_(std::move(retention)),
        index_(node_),
        unsaved_(*files_) {}
  void load(const std::string& id, std::vector<std::string>& warnings);
  void put(RunRecord record, bool is_written);
  void write_changed(RunRecord& record);
  RunIndex::OnDisk on_disk(const RunRecord& record, bool is_written) const;
  // Adds the intervals that could not be written before to views.jsonl, oldest first.
  Status record_intervals(RunRecord& record);
  Status write_active(RunRecord own);
  void delete_runs();  // applies retention; the caller holds `writing_`, or is the only thread

  const std::unique_ptr<RunFiles> files_;
  const std::string node_;
  const Retention retention_;

  std::mutex writing_;  // serializes disk access; the members below have locks of their own, taken after this one
  std::map<std::string, std::deque<ViewInterval>> unrecorded_;  // by run, oldest first
  RunIndex index_;
  UnsavedStates unsaved_;
};

}  // namespace tg::daemon

// Runs on disk: state-dir/runs/ID/{run.json, metrics.jsonl, views.jsonl, log.txt, model.safetensors,
// model-raw.safetensors, state.safetensors, checkpoint-LINEAGE-VIEW-STEP.safetensors}. A record is written when a run
// begins or is resumed, with every checkpoint, and when it ends (atomically). At start every record that says that its
// run goes on becomes INTERRUPTED: the process died during that run; what it had saved stays, to be resumed. Deletes
// ended runs beyond the configured bounds (retention.h), and says so; INTERRUPTED is no end. Any thread may call: one
// lock guards the memory, another one the writers, so that a status never waits for a disk. One process per state-dir
// (state-dir/lock).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/artefacts.h"
#include "daemon/store/found_states.h"
#include "daemon/store/held_states.h"
#include "daemon/store/retention.h"
#include "daemon/store/run_files.h"
#include "daemon/store/run_index.h"
#include "daemon/store/run_record.h"
#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::daemon {

struct Retention {
  RetentionLimits limits;
  std::function<void(const Deletion&)> deleted = [](const Deletion&) {};  // any thread; to be logged
};

class RunStore {
 public:
  // Creates the directories; loads what is there (unreadable records are reported in `warnings` and left alone).
  static Result<std::unique_ptr<RunStore>> open(const std::string& state_dir, const std::string& node,
                                                std::vector<std::string>& warnings, Retention retention = {});
  // Disk and memory. With an end, the stretch goes into views.jsonl, and that file's hash into the record. One of a new
  // lineage or view of a run that is there is the beginning of its next stretch. One that never began does not replace
  // a run that has: what that left stays.
  Status write(const RunRecord& record);
  // This node comes into a run that is on: its record, and the run's past as a member has it (views.jsonl, and the
  // stretch that ends there), in place of what was known here of that run.
  Status join(const RunRecord& record, const std::string& views, const Stretch& ended);
  // The run goes on in its next view: a line of the stretch that ended, and the record as it is from now on. What
  // status shows of it stays. Called by the thread that writes the run's states.
  Status change_view(const RunRecord& next, const Stretch& ended);
  // Disk only: what remains after a crash from now on. status does not change. Called by the thread that writes the
  // run's states; with a final state it is the last that writes there.
  Status keep(const RunRecord& record);
  // Changes the record of a run that has ended, in memory and then on disk. False if there is none with that key: an
  // earlier key of a run is not known any more.
  bool amend(std::uint64_t key, const std::function<void(RunRecord&)>& change);
  std::vector<RunRecord> records() const;  // of runs that began
  // The state of an ended run that could not be saved: its files are read from here until it is deleted, or the
  // disk has room (save_held). Neither reading it nor retention drops it.
  // `alive` is what the images read.
  void hold(const std::string& id, Artefacts artefacts, std::shared_ptr<const void> alive, std::uint64_t bytes) {
    held_.hold(id, std::move(artefacts), std::move(alive), bytes);
  }
  using Held = HeldStates::Held;
  Held held() const { return held_.held(); }
  // Tries again to write them; the keys of the runs whose state is on the disk now.
  std::vector<std::uint64_t> save_held();
  // Memory only: what status shows of the live run. A run without a record is remembered until forget() or write().
  // A final state is shown from write() on, not before: whoever sees one may fetch what the run left.
  void update(const schema::RunStatus& status) { index_.update(status); }
  // Memory only: from now on update() shows a resume of this ended run, until write() or forget(). Its record and its
  // files stay, can be fetched, and are as they were after forget().
  void show_resuming(const std::string& id) { index_.show_resuming(id); }
  // Memory only: what status shows as what comes next of this ended run, until it goes on.
  void show_next(const std::string& id, const std::string& next) { index_.show_next(id, next); }
  // The states that an ended run may go on from (found_states.h), read whole: not on the node's thread. kNotFound if it
  // has no record here. The caller tries save_held() first, for a state that is only in memory.
  Result<FoundStates> states(
      const std::string& id, const std::function<void()>& advance = [] {}) const;
  // Deletes an ended or interrupted run, its files and its record, and returns the bytes freed. kNotFound if there is
  // no such run, kRefused while it is running.
  Result<std::uint64_t> remove(const std::string& id);
  // Its model was fetched, here or from another member.
  Status mark_fetched(const std::string& id);
  void delete_what_is_due();  // by age; writes do so as well
  // A proposal that came to nothing: no run, or the one that was to be resumed.
  void forget(const std::string& id) { index_.forget(id); }
  std::optional<RunRecord> find(const std::string& id_or_unique_prefix) const {
    return index_.find(id_or_unique_prefix);
  }
  // As it was written, also while a resume of it is shown. The whole id.
  std::optional<RunRecord> recorded(const std::string& id) const { return index_.written(id); }
  // Exact id, else unique prefix; errors name what was asked: none (kNotFound), or several that fit (kUsage).
  Result<std::string> resolve(const std::string& id_or_prefix) const { return index_.resolve(id_or_prefix); }
  // Newest first; members has a row for every member, filled for this node only: once it has ended, with the steps of
  // the states that a resume may begin at.
  std::vector<schema::RunStatus> statuses() const { return index_.statuses(); }
  std::string directory(const std::string& id) const { return files_->directory(id); }
  bool exists(const std::string& id) const;
  // A slice of one of the run's files; unknown file names are refused (no path ever leaves the run's directory).
  Result<schema::SliceReply> read_slice(const std::string& id, const std::string& file, std::uint64_t offset,
                                        std::size_t most_bytes) const;

 private:
  RunStore(std::unique_ptr<RunFiles> files, std::string node, Retention retention)
      : files_(std::move(files)),
        node_(std::move(node)),
        retention_(std::move(retention)),
        index_(node_),
        held_(*files_) {}
  void load(const std::string& id, std::vector<std::string>& warnings);
  void put(RunRecord record, bool is_written);
  RunIndex::OnDisk on_disk(const RunRecord& record, bool is_written) const;
  void delete_runs();  // that are due; the caller holds `writing_`, or is alone

  const std::unique_ptr<RunFiles> files_;
  const std::string node_;
  const Retention retention_;

  std::mutex writing_;  // serializes what touches the disk; the parts below have locks of their own, taken after it
  RunIndex index_;
  HeldStates held_;
};

}  // namespace tg::daemon

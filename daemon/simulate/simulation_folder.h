// What a simulated run leaves on the disk, in one folder: run.json, metrics.jsonl, perhaps gradients.jsonl
// (gradient_lines.h), checkpoints while it goes on, and at its end the model's files and the state, all as a node
// writes them. What is there of the same run is gone on with. One process at a time writes there: it holds FOLDER/lock.
// Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/run/preparation_options.h"
#include "daemon/step/threads/trainer.h"
#include "daemon/store/line_file.h"
#include "daemon/store/run_files.h"
#include "daemon/store/run_record.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::daemon {

class SimulationFolder {
 public:
  explicit SimulationFolder(std::string path) : path_(std::move(path)) {}

  // Makes the folder, for this process alone, and deletes what interrupted writes have left. Where the run goes on;
  // nothing if it begins. An error names a folder that is another call's, or that has something else than this run.
  Result<std::optional<SavedStart>> take(const schema::JobSpec& job, const std::vector<std::uint16_t>& weights);

  // From now on it is this run's, with the metrics up to that step.
  // with_gradients: and with gradients.jsonl.
  Status open(const RunRecord& record, std::uint64_t step, bool with_gradients);
  void add_line(const std::string& line) {
    if (metrics_->add(line)) metrics_->flush();
  }
  void add_gradient_line(const std::string& line) {
    if (gradients_->add(line)) gradients_->flush();
  }
  // The state of its status, which is digest's. Of a run that is complete the model's files as well.
  Status save(RunRecord& record, const Prepared& prepared);

 private:
  Status lock();
  // What is there; nothing, in a folder that is new.
  Result<std::optional<RunRecord>> read() const;
  // The newest state of that run; nothing if it has none yet. The state of an end is deleted: as long as the record
  // does not tell of it, the run goes on from its last checkpoint. Whose engine that needs the caller asks.
  std::optional<SavedStart> saved(const RunRecord& record);
  Status open_lines(const char* name, std::uint64_t step, std::unique_ptr<LineFile>& file) const;

  const std::string path_;
  std::optional<OpenFile> lock_;
  std::unique_ptr<LineFile> metrics_, gradients_;  // gradients: perhaps none
};

}  // namespace tg::daemon

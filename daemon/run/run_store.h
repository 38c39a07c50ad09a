// Runs on disk: state-dir/runs/ID/{run.json, metrics.jsonl, log.txt, model.safetensors, model-raw.safetensors,
// state.safetensors}. A record is written when a run begins and when it ends (atomically). At start every record that
// says it is not final becomes FAILED: this process died in it. Keeps the newest kMostRunsKept. Any thread may call;
// one lock inside.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/control.h"

namespace tg::daemon {

struct MemberRecord {
  std::string node;
  std::string engine_build;  // of the own node; what the others said in their votes otherwise, "" if unknown
  std::uint64_t threads = 0;
  std::string kernels;
};

struct RunRecord {
  std::string id;
  std::string spec;  // canonical job; run.json shows it as an object of strings
  std::uint64_t seed = 0;
  std::uint64_t spec_hash = 0, model_hash = 0, data_hash = 0, initial_digest = 0;
  std::string node;                       // whose record this is
  std::vector<std::string> member_names;  // by rank
  MemberRecord own;
  std::uint32_t view = 1;
  std::string build;
  schema::RunStatus status;  // as of the last write; members holds the own row only
};

class RunStore {
 public:
  // Creates the directories; loads what is there (unreadable records are reported in `warnings` and left alone).
  static Result<std::unique_ptr<RunStore>> open(const std::string& state_dir, const std::string& node,
                                                std::vector<std::string>& warnings);
  Status write(const RunRecord& record);         // disk and memory
  void update(const schema::RunStatus& status);  // memory only: what status shows of the live run
  std::optional<RunRecord> find(const std::string& id_or_unique_prefix) const;
  // Exact id, else unique prefix; errors name what was asked: none, or several that fit.
  Result<std::string> resolve(const std::string& id_or_prefix) const;
  std::vector<schema::RunStatus> statuses() const;  // newest first
  std::string directory(const std::string& id) const;
  bool exists(const std::string& id) const;
  // A slice of one of the run's files; unknown file names are refused (no path ever leaves the run's directory).
  Result<schema::SliceReply> read_slice(const std::string& id, const std::string& file, std::uint64_t offset,
                                        std::size_t most_bytes) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

std::string record_to_json(const RunRecord& record);
Result<RunRecord> record_from_json(const std::string& text);

}  // namespace tg::daemon

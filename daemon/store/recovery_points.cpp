#include "daemon/store/recovery_points.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "daemon/store/checkpoints.h"
#include "daemon/store/run_history.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

namespace fs = std::filesystem;
using schema::StateId;

constexpr const char* kPartialSuffix = ".safetensors.partial";  // left by an interrupted engine::AtomicFile

RunHistory history_of(const std::string& directory, const RunRecord& record) {
  return {intervals_in(directory + "/" + kViewsFile), record};
}

// The names of possible state files, and of partial ones.
struct Names {
  std::vector<std::string> states, abandoned;
};
Names names_in(const std::string& directory) {
  Names names;
  std::error_code problem;
  fs::directory_iterator entries(directory, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    const std::string name = entries->path().filename().string();
    if (name == kStateFile) names.states.push_back(name);
    if (name.ends_with(kPartialSuffix)) names.abandoned.push_back(name);
  }
  std::ranges::sort(names.abandoned);
  const std::vector<std::string> checkpoints = checkpoints_in(directory);
  names.states.insert(names.states.end(), checkpoints.begin(), checkpoints.end());
  return names;
}

// An error message that begins with the file's path, without the path.
std::string without_path(const std::string& message, const std::string& path) {
  const std::string damaged = path + " ", unreadable = "cannot read " + path + ": ";
  if (message.starts_with(damaged)) return message.substr(damaged.size());
  return "cannot be read: " + (message.starts_with(unreadable) ? message.substr(unreadable.size()) : message);
}

// A state with a valid header on the run's branch of history; its values have not been read yet.
struct Candidate {
  RecoveryPoint state;
  StateFile file;
};

// Loads a candidate. An error is a phrase that follows the file's name.
Result<Candidate> load_candidate(const std::string& directory, const std::string& name, const RunHistory& history) {
  const auto rejected = [](std::string why) { return Error{ErrorKind::kCorrupt, std::move(why)}; };
  const std::string path = directory + "/" + name;
  Result<StateFile> file = open_state_file(path);
  if (!file) return rejected(without_path(file.error().message, path));
  const Result<StateFacts> facts = parse_facts(file->metadata);
  if (!facts) return facts.error();
  const StateId& id = facts->id;
  if (const std::optional<StateId> named = state_of_checkpoint(name);
      named && std::tie(named->lineage, named->view, named->step) != std::tie(id.lineage, id.view, id.step))
    return rejected("has another state than its name says: lineage " + std::to_string(id.lineage) + ", view " +
                    std::to_string(id.view) + ", step " + std::to_string(id.step));
  if (std::string why = history.rejection_reason(*facts); !why.empty()) return rejected(std::move(why));
  return Candidate{{id, *facts, name, name == kStateFile}, *std::move(file)};
}

// All candidates, newest first; adds the other files to `rejected`.
std::vector<Candidate> candidates_in(const std::string& directory, const RunRecord& record,
                                     std::vector<std::string>& rejected) {
  const RunHistory history = history_of(directory, record);
  const Names names = names_in(directory);
  std::vector<Candidate> all;
  for (const std::string& name : names.states) {
    Result<Candidate> one = load_candidate(directory, name, history);
    if (one) {
      all.push_back(*std::move(one));
    } else {
      rejected.push_back(name + " " + one.error().message);
    }
  }
  for (const std::string& name : names.abandoned) rejected.push_back(name + " was abandoned while it was written");
  std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) { return a.state.id > b.state.id; });
  return all;
}

}  // namespace

RecoveryPoints recovery_points_in(const std::string& directory, const RunRecord& record,
                                  const std::function<void()>& advance) {
  RecoveryPoints found;
  for (const Candidate& one : candidates_in(directory, record, found.rejected)) {
    if (std::ranges::count(found.states, one.state.id, &RecoveryPoint::id) > 0) continue;
    if (const Status whole = check_values(one.file, advance); whole) {
      found.states.push_back(one.state);
    } else {
      found.rejected.push_back(one.state.file + " " + without_path(whole.error().message, one.file.path));
    }
  }
  return found;
}

std::optional<RecoveryPoint> newest_recovery_point(const std::string& directory, const RunRecord& record) {
  std::vector<std::string> ignored;
  for (const Candidate& one : candidates_in(directory, record, ignored))
    if (check_values(one.file)) return one.state;
  return std::nullopt;
}

Result<StateFile> open_state(const std::string& directory, const StateId& id) {
  std::string why;
  for (const std::string& name : names_in(directory).states) {
    Result<StateFile> file = open_state_file(directory + "/" + name);
    const Result<StateFacts> facts = file ? parse_facts(file->metadata) : Result<StateFacts>(file.error());
    if (facts && facts->id == id) return file;
    if (const auto named = state_of_checkpoint(name); !facts && named && named->step == id.step)
      why = "; " + (file ? name + " " : "") + facts.error().message;
  }
  return Error{ErrorKind::kNotFound, directory + " has no state of step " + std::to_string(id.step) + " of lineage " +
                                         std::to_string(id.lineage) + " any more" + why};
}

std::vector<std::uint64_t> recovery_steps(const std::string& directory, const RunRecord& record) {
  const RunHistory history = history_of(directory, record);
  std::vector<StateId> ids;
  for (const std::string& name : names_in(directory).states) {
    std::optional<StateId> id = state_of_checkpoint(name);
    if (!id) {
      const Result<StateFile> file = open_state_file(directory + "/" + name);
      const Result<StateFacts> facts = file ? parse_facts(file->metadata) : Result<StateFacts>(file.error());
      if (facts && history.rejection_reason(*facts).empty()) id = facts->id;
    }
    if (id && history.contains(*id)) ids.push_back(*id);
  }
  std::ranges::sort(ids, std::ranges::greater());
  std::vector<std::uint64_t> steps;
  for (const StateId& id : ids)
    if (steps.size() < schema::kMaxStates && std::ranges::count(steps, id.step) == 0) steps.push_back(id.step);
  return steps;
}

}  // namespace tg::daemon

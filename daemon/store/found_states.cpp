#include "daemon/store/found_states.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "daemon/store/checkpoints.h"
#include "daemon/store/run_line.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

namespace fs = std::filesystem;
using schema::StateId;

constexpr const char* kPartialSuffix = ".safetensors.partial";  // as engine::AtomicFile leaves it

RunLine line_of(const std::string& directory, const RunRecord& record) {
  return {stretches_in(directory + "/" + kViewsFile), record};
}

// The names of what may be states, and of what was left of one.
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

// What comes after the file's name, of an error that names its path.
std::string without_path(const std::string& message, const std::string& path) {
  const std::string damaged = path + " ", unreadable = "cannot read " + path + ": ";
  if (message.starts_with(damaged)) return message.substr(damaged.size());
  return "cannot be read: " + (message.starts_with(unreadable) ? message.substr(unreadable.size()) : message);
}

// The state in that file, or a phrase that follows its name.
Result<StateFacts> state_in(const std::string& directory, const std::string& name, const RunLine& line,
                            const std::function<void()>& advance) {
  const auto refused = [](std::string why) { return Error{ErrorKind::kCorrupt, std::move(why)}; };
  const std::string path = directory + "/" + name;
  const Result<StateFile> file = open_state_file(path, true, advance);
  if (!file) return refused(without_path(file.error().message, path));
  Result<StateFacts> facts = facts_in(file->metadata);
  if (!facts) return facts;
  const StateId& id = facts->id;
  if (const std::optional<StateId> named = state_of_checkpoint(name);
      named && std::tie(named->lineage, named->view, named->step) != std::tie(id.lineage, id.view, id.step))
    return refused("has another state than its name says: lineage " + std::to_string(id.lineage) + ", view " +
                   std::to_string(id.view) + ", step " + std::to_string(id.step));
  if (std::string why = line.refusal(*facts); !why.empty()) return refused(std::move(why));
  return facts;
}

}  // namespace

FoundStates states_in(const std::string& directory, const RunRecord& record, const std::function<void()>& advance) {
  const RunLine line = line_of(directory, record);
  const Names names = names_in(directory);
  FoundStates found;
  for (const std::string& name : names.states) {
    const Result<StateFacts> facts = state_in(directory, name, line, advance);
    if (!facts) {
      found.refused.push_back(name + " " + facts.error().message);
    } else if (std::ranges::find(found.states, facts->id, &FoundState::id) == found.states.end()) {
      found.states.push_back({facts->id, *facts, name, name == kStateFile});
    }
  }
  for (const std::string& name : names.abandoned) found.refused.push_back(name + " was abandoned while it was written");
  std::ranges::stable_sort(found.states, std::ranges::greater(), &FoundState::id);
  return found;
}

Result<StateFile> open_state(const std::string& directory, const StateId& id) {
  std::string why;
  for (const std::string& name : names_in(directory).states) {
    Result<StateFile> file = open_state_file(directory + "/" + name, false);
    const Result<StateFacts> facts = file ? facts_in(file->metadata) : Result<StateFacts>(file.error());
    if (facts && facts->id == id) return file;
    if (const auto named = state_of_checkpoint(name); !facts && named && named->step == id.step)
      why = "; " + (file ? name + " " : "") + facts.error().message;
  }
  return Error{ErrorKind::kNotFound, directory + " has no state of step " + std::to_string(id.step) + " of lineage " +
                                         std::to_string(id.lineage) + " any more" + why};
}

std::vector<std::uint64_t> steps_in(const std::string& directory, const RunRecord& record) {
  const RunLine line = line_of(directory, record);
  std::vector<StateId> ids;
  for (const std::string& name : names_in(directory).states) {
    std::optional<StateId> id = state_of_checkpoint(name);
    if (!id) {
      const Result<StateFile> file = open_state_file(directory + "/" + name, false);
      const Result<StateFacts> facts = file ? facts_in(file->metadata) : Result<StateFacts>(file.error());
      if (facts && line.refusal(*facts).empty()) id = facts->id;
    }
    if (id && line.has(*id)) ids.push_back(*id);
  }
  std::ranges::sort(ids, std::ranges::greater());
  std::vector<std::uint64_t> steps;
  for (const StateId& id : ids)
    if (steps.size() < schema::kMostStates && std::ranges::count(steps, id.step) == 0) steps.push_back(id.step);
  return steps;
}

}  // namespace tg::daemon

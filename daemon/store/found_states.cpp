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

// A state whose header is whole and that is on the run's line; its values have not been read yet.
struct Candidate {
  FoundState state;
  StateFile file;
};

// An error is a phrase that follows the file's name.
Result<Candidate> candidate(const std::string& directory, const std::string& name, const RunLine& line) {
  const auto refused = [](std::string why) { return Error{ErrorKind::kCorrupt, std::move(why)}; };
  const std::string path = directory + "/" + name;
  Result<StateFile> file = open_state_file(path);
  if (!file) return refused(without_path(file.error().message, path));
  const Result<StateFacts> facts = facts_in(file->metadata);
  if (!facts) return facts.error();
  const StateId& id = facts->id;
  if (const std::optional<StateId> named = state_of_checkpoint(name);
      named && std::tie(named->lineage, named->view, named->step) != std::tie(id.lineage, id.view, id.step))
    return refused("has another state than its name says: lineage " + std::to_string(id.lineage) + ", view " +
                   std::to_string(id.view) + ", step " + std::to_string(id.step));
  if (std::string why = line.refusal(*facts); !why.empty()) return refused(std::move(why));
  return Candidate{{id, *facts, name, name == kStateFile}, *std::move(file)};
}

// All of them, newest first; the others are refused.
std::vector<Candidate> candidates_in(const std::string& directory, const RunRecord& record,
                                     std::vector<std::string>& refused) {
  const RunLine line = line_of(directory, record);
  const Names names = names_in(directory);
  std::vector<Candidate> all;
  for (const std::string& name : names.states) {
    Result<Candidate> one = candidate(directory, name, line);
    if (one) {
      all.push_back(*std::move(one));
    } else {
      refused.push_back(name + " " + one.error().message);
    }
  }
  for (const std::string& name : names.abandoned) refused.push_back(name + " was abandoned while it was written");
  std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) { return a.state.id > b.state.id; });
  return all;
}

}  // namespace

FoundStates states_in(const std::string& directory, const RunRecord& record, const std::function<void()>& advance) {
  FoundStates found;
  for (const Candidate& one : candidates_in(directory, record, found.refused)) {
    if (std::ranges::count(found.states, one.state.id, &FoundState::id) > 0) continue;
    if (const Status whole = check_values(one.file, advance); whole) {
      found.states.push_back(one.state);
    } else {
      found.refused.push_back(one.state.file + " " + without_path(whole.error().message, one.file.path));
    }
  }
  return found;
}

std::optional<FoundState> newest_state_in(const std::string& directory, const RunRecord& record) {
  std::vector<std::string> ignored;
  for (const Candidate& one : candidates_in(directory, record, ignored))
    if (check_values(one.file)) return one.state;
  return std::nullopt;
}

Result<StateFile> open_state(const std::string& directory, const StateId& id) {
  std::string why;
  for (const std::string& name : names_in(directory).states) {
    Result<StateFile> file = open_state_file(directory + "/" + name);
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
      const Result<StateFile> file = open_state_file(directory + "/" + name);
      const Result<StateFacts> facts = file ? facts_in(file->metadata) : Result<StateFacts>(file.error());
      if (facts && line.refusal(*facts).empty()) id = facts->id;
    }
    if (id && line.has(*id)) ids.push_back(*id);
  }
  std::ranges::sort(ids, std::ranges::greater());
  std::vector<std::uint64_t> steps;
  for (const StateId& id : ids)
    if (steps.size() < schema::kMaxStates && std::ranges::count(steps, id.step) == 0) steps.push_back(id.step);
  return steps;
}

}  // namespace tg::daemon

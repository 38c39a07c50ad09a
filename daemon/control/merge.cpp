#include "daemon/control/merge.h"

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/access/networks.h"

namespace tg::daemon {

namespace {

using schema::MemberStatus;
using schema::MeshStatus;
using schema::RunState;
using schema::RunStatus;

MemberStatus* row_of(RunStatus& run, const std::string& node) {
  for (MemberStatus& row : run.members) {
    if (row.node == node) return &row;
  }
  return nullptr;
}

template <class Status>
auto* row_of(Status& status, const std::string& node) {
  const auto row =
      std::find_if(status.nodes.begin(), status.nodes.end(), [&](const auto& one) { return one.name == node; });
  return row == status.nodes.end() ? nullptr : &*row;
}

// A run as reported by `node`, without the digests of other nodes, which it knows only second-hand.
RunStatus as_reported_by(const std::string& node, RunStatus run) {
  for (MemberStatus& row : run.members) {
    if (row.node == node) continue;
    row.digest = 0;
    row.digest_step = 0;
  }
  return run;
}

// "node-b could not save: no space", for members without the run's final state.
std::string unsaved(const RunStatus& run) {
  std::string text;
  for (const MemberStatus& row : run.members) {
    std::string part;
    if (row.save == schema::SaveState::kInMemory)
      part = row.node + " could not save (" + row.problem + ") and has the state in memory; fetch it";
    if (row.save == schema::SaveState::kNotSaved) part = row.node + " could not save: " + row.problem;
    if (row.save == schema::SaveState::kNothing && is_authoritative(run.state))
      part = row.node + " ended before it had saved" + (row.problem.empty() ? "" : ": " + row.problem);
    if (row.save == schema::SaveState::kUnknown && is_authoritative(run.state))
      part = row.node + " was lost before it reported whether it had saved";
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text;
}

bool is_begun(const RunStatus& run) { return run.state != RunState::kPending && run.state != RunState::kStarting; }

// Whether `one` takes precedence over `other`: a later lineage and a later view know more; in one view, a node that
// continues knows more than one that has left it (INTERRUPTED), or is about to join it.
bool knows_more(const RunStatus& one, const RunStatus& other) {
  if (one.lineage != other.lineage) return one.lineage > other.lineage;
  const bool ended = has_ended(one.state), other_ended = has_ended(other.state);
  if (ended && other_ended && precedence(one.state) != precedence(other.state))
    return precedence(one.state) > precedence(other.state);
  if (!ended && !other_ended && is_begun(one) != is_begun(other)) return is_begun(one);
  if (one.view != other.view) return one.view > other.view;
  return !ended && other.state == RunState::kInterrupted;
}

void add_view(RunStatus& merged, const std::string& node, const RunStatus& view) {
  const bool same = view.lineage == merged.lineage && view.view == merged.view;
  const bool both_ended = same && has_ended(merged.state) && has_ended(view.state);
  if (knows_more(view, merged)) {
    std::vector<MemberStatus> rows = std::move(merged.members);
    merged = as_reported_by(node, view);
    for (const MemberStatus& row : merged.members)
      if (std::ranges::find(rows, row.node, &MemberStatus::node) == rows.end()) rows.push_back(row);
    merged.members = std::move(rows);
  } else if (both_ended && view.state == merged.state && !is_authoritative(merged.state)) {
    const RunStatus& first = view.since_ms < merged.since_ms ? view : merged;
    const std::int64_t since_ms = first.since_ms;
    std::string reason = first.reason;
    // A node that crashed knows only the beginning of the run; the others know how far it came.
    if (view.step > merged.step) {
      std::vector<MemberStatus> rows = std::move(merged.members);
      merged = view;
      merged.members = std::move(rows);
    }
    merged.since_ms = since_ms;
    merged.reason = std::move(reason);
  }
  // A node may still be reading data after the others, or warn while it trains.
  const bool goes_on = merged.state == RunState::kStarting || merged.state == RunState::kRunning;
  if (goes_on && view.state == merged.state && merged.reason.empty()) merged.reason = view.reason;
  for (const MemberStatus& row : view.members) {
    MemberStatus* known = row_of(merged, row.node);
    if (row.node != node) {  // it knows how long it waited for the others
      if (known == nullptr) continue;
      known->wait_share += row.wait_share;
      const bool unheard = known->save == schema::SaveState::kNone || known->save == schema::SaveState::kUnknown;
      if (unheard && row.save != schema::SaveState::kNone) {
        known->save = row.save;
        known->problem = row.problem;
      }
      continue;
    }
    if (known != nullptr) {
      const MemberStatus told = *known;
      *known = row;
      known->wait_share += told.wait_share;
      // It has already reported to the others, and waits for the last of them.
      if (row.save == schema::SaveState::kNone) {
        known->save = told.save;
        known->problem = told.problem;
      }
    } else {
      merged.members.push_back(row);
    }
  }
}

std::string first_ids(const std::vector<RunStatus>& runs) {
  constexpr std::size_t kShown = 5;
  std::string ids;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i) ids += (i == 0 ? "" : ", ") + runs[i].id;
  return ids + (runs.size() > kShown ? " and " + std::to_string(runs.size() - kShown) + " more" : "");
}

// " that answers (not node-c)": a silent node may know more than the others.
std::string silent_nodes_note(const MeshStatus& status) {
  std::string silent;
  for (const schema::NodeStatus& node : status.nodes) {
    if (node.state == schema::NodeState::kUnreachable) silent += (silent.empty() ? "" : ", ") + node.name;
  }
  return silent.empty() ? "" : " that answers (not " + silent + ")";
}

}  // namespace

namespace {

// Marks a node that the asked node sees as up as not up if another node cannot reach it.
void add_second_hand(MeshStatus& own, const MeshStatus& answer) {
  for (const schema::NodeStatus& told : answer.nodes) {
    if (told.state == schema::NodeState::kUp || told.problem.empty() || told.name == own.node) continue;
    for (schema::NodeStatus& node : own.nodes) {
      if (node.name != told.name || node.name == answer.node || node.state != schema::NodeState::kUp) continue;
      node.state = schema::NodeState::kNoLink;
      node.problem = "as seen by " + answer.node + ": " + told.problem;
    }
  }
}

// A row that its node has not reported has no phase, and where the node has answered, no saved state: it was wiped.
void mark_unreported(RunStatus& run, const MeshStatus& mesh, const std::vector<std::string>& answered,
                     const std::map<std::string, std::uint32_t>& reporters) {
  if (!is_begun(run)) return;
  for (MemberStatus& row : run.members) {
    const schema::NodeStatus* const node = row_of(mesh, row.node);
    if (node == nullptr) continue;
    if (const auto told = reporters.find(row.node); told != reporters.end()) {
      if (told->second < run.lineage && has_ended(row.state) && row.problem.empty())
        row.problem = "knows an earlier lineage";
      continue;
    }
    const bool silent = std::ranges::count(answered, row.node) == 0;
    if (silent && (has_ended(run.state) || node->state != schema::NodeState::kUnreachable))
      continue;  // its state may still be on its disk; or it is late
    row.phase = schema::Phase::kIdle;
    row.phase_ms = row.phase_limit_ms = 0;
    row.save = schema::SaveState::kNone;
    row.problem = silent ? "does not answer" : "has no copy of the run";
  }
}

// Names a lower lineage that has gone on beyond the step at which the run's own began (daemon/README.md).
void name_lower_lineages(std::map<std::string, RunStatus>& merged, const MeshStatus& from) {
  for (const RunStatus& one : from.runs) {
    RunStatus& run = merged.at(one.id);
    const bool counts = !has_ended(one.state) || is_authoritative(one.state);
    if (!counts || one.lineage >= run.lineage || one.step <= run.from_step) continue;
    run.reason += (run.reason.empty() ? "" : "; ") + from.node + " has lineage " + std::to_string(one.lineage) +
                  " of it at step " + std::to_string(one.step) + "; this is lineage " + std::to_string(run.lineage) +
                  ", from step " + std::to_string(run.from_step);
  }
}

}  // namespace

MeshStatus merge_statuses(MeshStatus own, const std::vector<MeshStatus>& answers) {
  std::map<std::string, RunStatus> merged;
  // By run: the nodes that reported it, with the lineage that each reported.
  std::map<std::string, std::map<std::string, std::uint32_t>> reporters;
  for (const RunStatus& run : own.runs) {
    merged.emplace(run.id, as_reported_by(own.node, run));
    reporters[run.id].emplace(own.node, run.lineage);
  }
  std::vector<std::string> answered{own.node};
  for (const MeshStatus& answer : answers) {
    answered.push_back(answer.node);
    schema::NodeStatus* const node = row_of(own, answer.node);
    const schema::NodeStatus* const told = row_of(answer, answer.node);
    if (node != nullptr && told != nullptr) node->compute = told->compute;
    // A node that answers is alive, even if its heartbeats have not arrived yet.
    if (node != nullptr && node->state == schema::NodeState::kUnreachable)
      node->state = node->problem.empty() ? schema::NodeState::kUp : schema::NodeState::kNoLink;
    if (node != nullptr && told != nullptr && node->problem.empty()) node->problem = told->problem;
    for (const RunStatus& run : answer.runs) {
      reporters[run.id].emplace(answer.node, run.lineage);
      const auto [at, is_new] = merged.try_emplace(run.id);
      if (is_new) {
        at->second = as_reported_by(answer.node, run);
      } else {
        add_view(at->second, answer.node, run);
      }
    }
  }
  name_lower_lineages(merged, own);
  for (const MeshStatus& answer : answers) name_lower_lineages(merged, answer);
  for (const MeshStatus& answer : answers) add_second_hand(own, answer);
  own.runs.clear();
  for (auto& [id, run] : merged) {
    // Each row holds the sum over the other members' views; a member's own view does not count.
    const auto views = std::ranges::count_if(reporters[id], [&](const auto& one) { return !run.has_left(one.first); });
    const auto others = static_cast<double>(std::max<std::ptrdiff_t>(views, 2) - 1);
    for (MemberStatus& row : run.members) row.wait_share /= others;
    // The rows of nodes that have left, or missed the last lineage, are out of date.
    const auto was_away = [&, &known = reporters[id]](const std::string& node) {
      return schema::is_final(run.state) && known.contains(node) && known[node] < run.lineage;
    };
    std::erase_if(run.members, [&](const MemberStatus& row) { return run.has_left(row.node) || was_away(row.node); });
    std::sort(run.members.begin(), run.members.end(),
              [](const MemberStatus& a, const MemberStatus& b) { return a.node < b.node; });
    if (const std::string problem = schema::is_final(run.state) ? unsaved(run) : ""; !problem.empty())
      run.reason += (run.reason.empty() ? "" : "; ") + problem;
    mark_unreported(run, own, answered, reporters[id]);
    own.runs.push_back(std::move(run));
  }
  std::sort(own.runs.begin(), own.runs.end(), schema::is_newer);
  for (schema::NodeStatus& node : own.nodes)
    if (node.state == schema::NodeState::kUnreachable && node.problem.empty())
      node.problem = no_answer_text(node.address);
  return own;
}

schema::ReplyBody select_run(MeshStatus merged, const schema::StatusRequest& asked) {
  if (asked.run.empty() && asked.pick == schema::Pick::kOnly) return merged;
  std::vector<RunStatus>& runs = merged.runs;  // newest first
  const auto exact = std::find_if(runs.begin(), runs.end(), [&](const RunStatus& run) { return run.id == asked.run; });
  if (exact != runs.end()) {
    runs = {std::move(*exact)};
    return merged;
  }
  std::erase_if(runs, [&](const RunStatus& run) { return !run.id.starts_with(asked.run); });
  if (runs.empty())
    return Error{ErrorKind::kNotFound, (asked.run.empty() ? "no run" : "no run '" + asked.run + "'") + " on any node" +
                                           silent_nodes_note(merged) + "; list them: tgctl list"};
  const auto has_ended = [](const RunStatus& run) { return schema::has_ended(run.state); };
  const bool going = asked.pick == schema::Pick::kOnlyActive;
  if (going && !std::ranges::all_of(runs, has_ended)) std::erase_if(runs, has_ended);
  if (runs.size() > 1 && (asked.pick == schema::Pick::kOnly || going))
    return Error{ErrorKind::kUsage, "run '" + asked.run + "' is not unique: " + std::to_string(runs.size()) +
                                        " match: " + first_ids(runs) + "; give more of its id"};
  const bool ended = asked.pick == schema::Pick::kNewestEnded;
  auto meant = std::find_if(runs.begin(), runs.end(),
                            [&](const RunStatus& run) { return schema::has_ended(run.state) == ended; });
  if (meant == runs.end() || asked.run.empty()) meant = runs.begin();
  runs = {std::move(*meant)};
  return merged;
}

MeshStatus select_prefix(MeshStatus own, const std::string& prefix) {
  std::erase_if(own.runs, [&](const RunStatus& run) { return !run.id.starts_with(prefix); });
  return own;
}

}  // namespace tg::daemon

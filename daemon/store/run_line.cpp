#include "daemon/store/run_line.h"

#include <algorithm>
#include <tuple>

namespace tg::daemon {

RunLine::RunLine(const std::vector<Stretch>& past, const RunRecord& record)
    : run_(record.id), lineage_(record.status.lineage) {
  const auto learn = [this](const Stretch& stretch) {
    keys_.emplace(stretch.lineage, stretch.key);
    from_.try_emplace(stretch.lineage, stretch.from);  // of its first view
  };
  std::ranges::for_each(past, learn);
  learn(stretch_of(record));
}

bool RunLine::has(const schema::StateId& id) const {
  const schema::StateId* furthest = nullptr;
  for (std::uint32_t lineage = lineage_; lineage != id.lineage; lineage = furthest->lineage) {
    const auto from = from_.find(lineage);
    if (lineage < id.lineage || from == from_.end() || from->second.lineage >= lineage) return false;
    furthest = &from->second;
  }
  return furthest == nullptr || std::tie(id.view, id.step) <= std::tie(furthest->view, furthest->step);
}

std::string RunLine::refusal(const StateFacts& facts) const {
  if (facts.run != run_) return "is of another run, " + facts.run;
  const std::string lineage = "lineage " + std::to_string(facts.id.lineage);
  const auto [first, last] = keys_.equal_range(facts.id.lineage);
  if (first == last) return "is of " + lineage + ", which this node's record of the run does not know";
  // The version before wrote no key; there was one lineage.
  const bool fits = std::any_of(first, last, [&](const auto& known) { return known.second == facts.key; });
  if (!fits && facts.key != 0) return "has another key of " + lineage + " than this node's record of the run";
  if (!has(facts.id)) return "was given up when the run went back behind it";
  return "";
}

}  // namespace tg::daemon

#include "daemon/store/run_history.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

RunHistory::RunHistory(const std::vector<ViewInterval>& past, const RunRecord& record)
    : run_(record.id), lineage_(record.status.lineage) {
  const auto learn = [this](const ViewInterval& interval) {
    keys_.emplace(interval.lineage, interval.key);
    from_.try_emplace(interval.lineage, interval.from);  // the first view's counts
    if (!interval.unasked) by_order_ = std::max(by_order_, interval.lineage);
  };
  std::ranges::for_each(past, learn);
  learn(interval_of(record));
}

bool RunHistory::contains(const schema::StateId& id) const {
  const schema::StateId* furthest = nullptr;
  for (std::uint32_t lineage = lineage_; lineage != id.lineage; lineage = furthest->lineage) {
    const auto from = from_.find(lineage);
    if (lineage < id.lineage || from == from_.end() || from->second.lineage >= lineage) return false;
    furthest = &from->second;
  }
  return furthest == nullptr || std::tie(id.view, id.step) <= std::tie(furthest->view, furthest->step);
}

std::vector<schema::Origin> RunHistory::line() const {
  std::vector<schema::Origin> line;
  for (auto at = from_.find(lineage_); at != from_.end() && line.size() < schema::kMaxOrigins;) {
    const schema::StateId& from = at->second;
    if (from.lineage == 0 || from.lineage >= at->first) break;
    const auto [first, last] = keys_.equal_range(from.lineage);
    line.push_back({from.lineage, first == last ? 0 : std::prev(last)->second, from.step});
    at = from_.find(from.lineage);
  }
  return line;
}

std::string RunHistory::rejection_reason(const StateFacts& facts) const {
  if (facts.run != run_ && !schema::is_set_aside(run_, facts.run)) return "belongs to another run, " + facts.run;
  const std::string lineage = "lineage " + std::to_string(facts.id.lineage);
  const auto [first, last] = keys_.equal_range(facts.id.lineage);
  if (first == last) return "belongs to " + lineage + ", which this node's record of the run does not know";
  // The version before this one wrote no key; it had one lineage.
  const bool fits = std::any_of(first, last, [&](const auto& known) { return known.second == facts.key; });
  if (!fits && facts.key != 0) return "has another key for " + lineage + " than this node's record of the run";
  if (!contains(facts.id)) return "was given up when the run was resumed from an earlier state";
  return "";
}

}  // namespace tg::daemon

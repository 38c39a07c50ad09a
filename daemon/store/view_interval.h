// The steps of a run in one view of one lineage: from the state that the view began with to its last committed step.
// views.jsonl, a run's past, has a line for each interval that has ended. A crash may tear its last line: it is ignored
// by readers and written again from the record (run_record.h), which has the interval until then.
//
//   line := a JSON object of the fields below, in their order, and a newline
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/described/rule.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

inline constexpr const char* kViewsFile = "views.jsonl";

struct ViewInterval {
  std::uint32_t lineage = 1;
  std::uint64_t key = 0;
  std::uint32_t view = 1;
  schema::StateId from;                       // the state that it began with; lineage 0 = the run's beginning
  std::uint64_t to_step = 0;                  // committed steps at its end
  std::vector<std::string> members;           // by rank
  std::vector<std::uint16_t> weights;         // by rank
  std::map<std::string, std::string> builds;  // the engines' builds by member, as far as known
  // The job's settings that a resume may change; empty in an older file.
  std::map<std::string, std::string> settings;
  bool unasked = false;  // the lineage began automatically
  std::string ended;     // how and why: "COMPLETED", "FAILED: node-b ..."

  bool same_as(const ViewInterval& other) const {
    return lineage == other.lineage && key == other.key && view == other.view;
  }
};
void fields(schema::Is<ViewInterval> auto& it, auto&& field) {
  field("lineage", it.lineage);
  field("key", it.key, schema::plain().digest());
  field("view", it.view);
  field("from", it.from);
  field("to_step", it.to_step);
  field("members", it.members, schema::list(schema::kMaxMembers, schema::node_name()).noun("a list of names"));
  field("weights", it.weights,
        schema::list(schema::kMaxMembers, schema::between(1, schema::kMaxWeight)).noun("a list of weights"));
  field("builds", it.builds, schema::line(schema::kMaxBuildBytes).noun("an object of builds"));
  field("settings", it.settings, schema::line(schema::kMaxReasonBytes).noun("an object of strings"));
  field("unasked", it.unasked);
  field("ended", it.ended, schema::line(schema::kMaxReasonBytes));
}

std::string interval_to_line(const ViewInterval& interval);  // without its newline
// Never throws, whatever the line; an error (kCorrupt) names the first invalid field.
Result<ViewInterval> interval_from_line(const std::string& line);

// A larger file is not read.
inline constexpr std::uint64_t kMaxViewsBytes = std::uint64_t{64} << 20;
// The intervals in that file, oldest first; none without a file. Torn and damaged lines are skipped.
std::vector<ViewInterval> intervals_in(const std::string& path);
// The first view of that lineage, which has all its nodes; no value if its line is missing.
std::optional<ViewInterval> first_view_in(const std::string& path, std::uint32_t lineage);
// The state with which the last `times` lineages all began, which means that the run made no progress; no value if they
// began with different states.
std::optional<schema::StateId> repeated_start(const std::vector<ViewInterval>& past, std::size_t times);
// Adds a line; replaces the last line if it is of the same interval. Returns the number of lines.
Result<std::uint64_t> add_interval(const std::string& path, const ViewInterval& interval);

}  // namespace tg::daemon

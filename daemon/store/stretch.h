// A run's past: views.jsonl has a line for each stretch that has ended. A stretch is what one view of one lineage has
// done: from the state that it began with to the step that it came to. Its last line may be torn by a crash: then it is
// dropped when it is read, and written anew from the record (run_record.h), which has all of it until then.
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

struct Stretch {
  std::uint32_t lineage = 1;
  std::uint64_t key = 0;
  std::uint32_t view = 1;
  schema::StateId from;                       // what it began with; lineage 0: the run's beginning
  std::uint64_t to_step = 0;                  // committed steps at its end
  std::vector<std::string> members;           // by rank
  std::vector<std::uint16_t> weights;         // the same
  std::map<std::string, std::string> builds;  // of engines, by member, as far as they are known
  // The keys of the job that a resume may change, as they were; empty in an older file.
  std::map<std::string, std::string> settings;
  std::string ended;  // how and why: "COMPLETED", "FAILED: node-b ..."

  bool same_as(const Stretch& other) const {
    return lineage == other.lineage && key == other.key && view == other.view;
  }
};
void fields(schema::Is<Stretch> auto& it, auto&& field) {
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
  field("ended", it.ended, schema::line(schema::kMaxReasonBytes));
}

std::string stretch_to_line(const Stretch& stretch);  // without its newline
// Never throws, whatever the line; an error (kCorrupt) names the first field that is off.
Result<Stretch> stretch_from_line(const std::string& line);

// A file with more bytes is not read.
inline constexpr std::uint64_t kMaxViewsBytes = std::uint64_t{64} << 20;
// The stretches in that file, the oldest first; none without a file. A line that is torn or damaged is left out.
std::vector<Stretch> stretches_in(const std::string& path);
// Of all nodes of that lineage: its first view; nothing if its line is not there.
std::optional<Stretch> first_view_in(const std::string& path, std::uint32_t lineage);
// The state whose bits the last `times` lineages all began with, so that the run came to no other one; nothing if they
// did not.
std::optional<schema::StateId> begun_in_vain(const std::vector<Stretch>& past, std::size_t times);
// Adds a line; one of the same stretch at the end of the file is replaced. Returns how many lines there are then.
Result<std::uint64_t> add_stretch(const std::string& path, const Stretch& stretch);

}  // namespace tg::daemon

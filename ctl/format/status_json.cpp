#include "ctl/format/status_json.h"

#include <optional>

#include "ctl/format/progress.h"
#include "schema/described/json_form.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;
using schema::JsonView;

Json phase(const schema::MemberStatus& member) {
  const bool limited = member.phase_limit_ms > 0;
  return {{"name", to_word(member.phase)},
          {"seconds", limited ? Json(static_cast<double>(member.phase_ms) / 1000) : Json(nullptr)},
          {"limit_seconds", limited ? Json(static_cast<double>(member.phase_limit_ms) / 1000) : Json(nullptr)}};
}

Json run_json(const schema::RunStatus& run, std::int64_t now_ms) {
  Json json = to_json(run, JsonView::kShown, run.step > 0);
  if (!run.evaluated) json["evaluation"] = nullptr;
  const std::optional<double> left = seconds_left(run, now_ms);
  json["seconds_left"] = left ? schema::number_to_json(*left) : Json(nullptr);
  json["members"] = Json::array();
  for (const schema::MemberStatus& member : run.members) {
    Json& row = json["members"].emplace_back(to_json(member, JsonView::kShown));
    row["phase"] = phase(member);
    row["holds_up"] = member.holds_up();
  }
  return json;
}

Json node_json(const schema::NodeStatus& node) {
  Json json = to_json(node, JsonView::kShown);
  Json& compute = json["compute"];
  if (node.compute.device.empty()) compute["memory_free_bytes"] = compute["memory_total_bytes"] = nullptr;
  if (node.compute.engine.empty()) compute = nullptr;
  return json;
}

Json runs_json(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms) {
  Json rows = Json::array();
  for (const schema::RunStatus& run : runs) rows.push_back(run_json(run, now_ms));
  return rows;
}

// Replaces bytes that are not UTF-8 (a path in a reason), for which dump would throw.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string format_status_json(const schema::MeshStatus& mesh, std::int64_t now_ms, int indent) {
  Json nodes = Json::array();
  for (const schema::NodeStatus& node : mesh.nodes) nodes.push_back(node_json(node));
  return text_of(
      {{"schema_version", kStatusSchemaVersion}, {"nodes", std::move(nodes)}, {"runs", runs_json(mesh.runs, now_ms)}},
      indent);
}

std::string format_list_json(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms, int indent) {
  return text_of({{"schema_version", kStatusSchemaVersion}, {"runs", runs_json(runs, now_ms)}}, indent);
}

}  // namespace tg::ctl

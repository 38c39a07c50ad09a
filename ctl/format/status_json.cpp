#include "ctl/format/status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "ctl/format/progress.h"
#include "ctl/format/table.h"
#include "kernels/base/hex.h"

namespace tg::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json digest(std::uint64_t value) { return value == 0 ? Json(nullptr) : Json(hex_digest(value)); }

Json evaluation(const schema::RunStatus& run) {
  if (!run.evaluated) return nullptr;
  return {{"step", run.evaluation_step},
          {"accuracy", number(run.evaluation_accuracy)},
          {"accuracy_5", run.evaluation_accuracy_5 > 0 ? number(run.evaluation_accuracy_5) : Json(nullptr)},
          {"loss", number(run.evaluation_loss)}};
}

Json phase(const schema::MemberStatus& member) {
  const bool limited = member.phase_limit_ms > 0;
  return {{"name", to_word(member.phase)},
          {"seconds", limited ? Json(static_cast<double>(member.phase_ms) / 1000) : Json(nullptr)},
          {"limit_seconds", limited ? Json(static_cast<double>(member.phase_limit_ms) / 1000) : Json(nullptr)}};
}

Json member_json(const schema::MemberStatus& member) {
  return {{"node", member.node},
          {"state", to_word(member.state)},
          {"phase", phase(member)},
          {"step", member.step},
          {"digest", digest(member.digest)},
          {"wait_share", number(member.wait_share)},
          {"save", to_word(member.save)},
          {"problem", member.problem},
          {"holds_up", member.holds_up()},
          {"samples", member.samples},
          {"data_wait_share", number(member.data_wait_share)}};
}

Json time(std::int64_t unix_ms) { return unix_ms <= 0 ? Json(nullptr) : Json(format_second(unix_ms)); }

Json run_json(const schema::RunStatus& run, std::int64_t now_ms) {
  // What only a step can measure has no value before the first.
  const auto measured = [&run](double value) { return run.step == 0 ? Json(nullptr) : number(value); };
  Json members = Json::array();
  for (const schema::MemberStatus& member : run.members) members.push_back(member_json(member));
  const std::optional<double> left = seconds_left(run, now_ms);
  return {{"id", run.id},
          {"state", to_word(run.state)},
          {"reason", run.reason},
          {"started", time(run.started_ms)},
          {"since", time(run.since_ms)},
          {"seconds_left", left ? number(*left) : Json(nullptr)},
          {"model", run.model},
          {"exchange", run.exchange},
          {"coding", run.coding},
          {"step", run.step},
          {"steps", run.steps},
          {"loss", measured(run.loss)},
          {"evaluation", evaluation(run)},
          {"samples_per_second", measured(run.samples_per_second)},
          {"code_bits_per_parameter", measured(run.code_bits_per_parameter)},
          {"sent_bits_per_parameter", measured(run.sent_bits_per_parameter)},
          {"sent_bytes_per_step", measured(run.sent_bytes_per_step)},
          {"zeros", measured(run.zeros)},
          {"digest", digest(run.digest)},
          {"members", std::move(members)}};
}

Json runs_json(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms) {
  Json rows = Json::array();
  for (const schema::RunStatus& run : runs) rows.push_back(run_json(run, now_ms));
  return rows;
}

// A text that is no UTF-8 (a path in a reason) must not end the program.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

namespace {

Json compute_json(const schema::ComputeStatus& compute) {
  if (compute.engine.empty()) return nullptr;
  const bool is_device = !compute.device.empty();
  return {{"engine", compute.engine},
          {"device", is_device ? Json(compute.device) : Json(nullptr)},
          {"math", compute.math},
          {"memory_free_bytes", is_device ? Json(compute.free_bytes) : Json(nullptr)},
          {"memory_total_bytes", is_device ? Json(compute.total_bytes) : Json(nullptr)},
          {"problem", compute.problem},
          {"why_cpu", compute.why_cpu}};
}

}  // namespace

std::string format_status_json(const schema::MeshStatus& mesh, std::int64_t now_ms, int indent) {
  Json nodes = Json::array();
  for (const schema::NodeStatus& node : mesh.nodes) {
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"state", to_word(node.state)},
                     {"problem", node.problem},
                     {"compute", compute_json(node.compute)}});
  }
  return text_of(
      {{"schema_version", kStatusSchemaVersion}, {"nodes", std::move(nodes)}, {"runs", runs_json(mesh.runs, now_ms)}},
      indent);
}

std::string format_list_json(const std::vector<schema::RunStatus>& runs, std::int64_t now_ms, int indent) {
  return text_of({{"schema_version", kStatusSchemaVersion}, {"runs", runs_json(runs, now_ms)}}, indent);
}

}  // namespace tg::ctl

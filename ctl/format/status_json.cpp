#include "ctl/format/status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

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
          {"loss", number(run.evaluation_loss)}};
}

Json member_json(const schema::MemberStatus& member) {
  return {{"node", member.node},
          {"state", to_word(member.state)},
          {"step", member.step},
          {"digest", digest(member.digest)},
          {"wait_share", number(member.wait_share)},
          {"save", to_word(member.save)},
          {"problem", member.problem},
          {"holds_up", member.holds_up()}};
}

Json run_json(const schema::RunStatus& run) {
  // What only a step can measure has no value before the first.
  const auto measured = [&run](double value) { return run.step == 0 ? Json(nullptr) : number(value); };
  Json members = Json::array();
  for (const schema::MemberStatus& member : run.members) members.push_back(member_json(member));
  return {{"id", run.id},
          {"state", to_word(run.state)},
          {"reason", run.reason},
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

}  // namespace

std::string format_status_json(const schema::MeshStatus& mesh, int indent) {
  Json nodes = Json::array();
  for (const schema::NodeStatus& node : mesh.nodes) {
    nodes.push_back({{"name", node.name}, {"address", node.address}, {"state", node.state}});
  }
  Json runs = Json::array();
  for (const schema::RunStatus& run : mesh.runs) runs.push_back(run_json(run));
  const Json status = {
      {"schema_version", kStatusSchemaVersion}, {"nodes", std::move(nodes)}, {"runs", std::move(runs)}};
  // A text that is no UTF-8 (a path in a reason) must not end the program.
  return status.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tg::ctl

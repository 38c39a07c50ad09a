#include "ctl/plan/plan_report.h"

#include <array>
#include <vector>

#include "ctl/format/table.h"
#include "ctl/plan/link_rate.h"
#include "kernels/base/log.h"
#include "kernels/base/words.h"
#include "schema/described/json_form.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;
using schema::ForecastReply;
using schema::ForecastRow;
using schema::Outcome;

double over_ring(const Outcome& outcome, const Outcome& ring) {
  return outcome.step > 0 && ring.step > 0 ? ring.step / outcome.step : 0;
}

// Three digits: 0.45, 3.96, 39.6, 396.
std::string times(double value) {
  return value > 0 ? format_fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) : "-";
}

std::string seconds(double value) { return value > 0 ? format_seconds(value) : "-"; }

std::string rate(double value) { return value > 0 ? format_fixed(value, value < 100 ? 1 : 0) : "-"; }

// A part of a step on each line, an exchange in each column.
std::string split_table(const ForecastRow& row, const std::string& coding) {
  const std::array<const Outcome*, 3> exchanges{&row.direct, &row.sharded, &row.ring};
  Rows rows{{"N = " + std::to_string(row.nodes), "DIRECT", "SHARDED", "FLOAT32 RING"}, {"coding", coding, coding, "-"}};
  const auto add = [&](const char* name, auto text_of) {
    std::vector<std::string>& cells = rows.emplace_back(1, name);
    for (const Outcome* outcome : exchanges) cells.push_back(text_of(*outcome));
  };
  const auto add_seconds = [&](const char* name, double Outcome::*part) {
    add(name, [part](const Outcome& outcome) { return seconds(outcome.*part); });
  };
  add_seconds("compute", &Outcome::compute);
  add_seconds("processor", &Outcome::processor);
  add_seconds("wire", &Outcome::wire);
  add_seconds("step", &Outcome::step);
  add("sent", [](const Outcome& outcome) { return format_bytes(outcome.sent_bytes); });
  add("samples/s", [](const Outcome& outcome) { return rate(outcome.samples_per_second); });
  add("x one node", [](const Outcome& outcome) { return times(outcome.speed_up); });
  add("x ring", [&row](const Outcome& outcome) { return times(over_ring(outcome, row.ring)); });
  return format_table(rows);
}

std::string size_table(const ForecastReply& reply) {
  Rows rows{{"N", "BATCH", "DIRECT", "X ONE", "X RING", "SHARDED", "X ONE", "X RING", "RING", "X ONE"}};
  bool beyond = false;  // more nodes than a run allows
  for (const ForecastRow& row : reply.table) {
    beyond = row.nodes > schema::kMaxMembers;
    rows.push_back({std::to_string(row.nodes) + (beyond ? "*" : ""), std::to_string(row.local_batch),
                    seconds(row.direct.step), times(row.direct.speed_up), times(over_ring(row.direct, row.ring)),
                    seconds(row.sharded.step), times(row.sharded.speed_up), times(over_ring(row.sharded, row.ring)),
                    seconds(row.ring.step), times(row.ring.speed_up)});
  }
  std::string text = format_table(rows);
  text += format_text("BATCH: samples of one node. X ONE, X RING: times as fast as one node, as the float32 ring.");
  if (beyond) text += format_text("*: more nodes than a run allows (" + std::to_string(schema::kMaxMembers) + ")");
  return text;
}

Json row_json(const ForecastRow& row) {
  Json json = to_json(row, schema::JsonView::kShown);
  const auto compare = [&](const char* exchange, const Outcome& outcome) {
    const double times = over_ring(outcome, row.ring);
    json[exchange]["over_ring"] = times > 0 ? schema::number_to_json(times) : Json(nullptr);
  };
  compare("direct", row.direct);
  compare("sharded", row.sharded);
  compare("ring", row.ring);
  return json;
}

}  // namespace

std::string format_forecast(const ForecastReply& reply) {
  const std::string link = reply.line_mbps > 0 ? format_link(reply.line_mbps) + ", " : "as measured: ";
  std::string text = format_table({
      {"model",
       reply.model + ", " + std::to_string(reply.parameters) + " parameters, compute = " + to_word(reply.compute)},
      {"batch", std::to_string(reply.asked.global_batch) + " samples a step, " +
                    std::to_string(reply.asked.local_batch) + " on a node"},
      {"link", link + format_mbps(reply.payload_mbps) + " of payload"},
      {"cores", format_fixed(reply.cores, 2) + " of a node"},
      {"speeds",
       "of " + reply.node + ", measured " + (reply.measured_now ? "just now" : format_utc(reply.measured_ms))},
      {"auto", reply.exchange + ", coding " + reply.coding + ", as a start would choose"},
  });
  text += "\n" + split_table(reply.asked, reply.coding) +
          format_text("processor: the exchange's processor time. The parts overlap: a step is not their sum.");
  text += "\n" + size_table(reply);
  text += "\nassumed:\n";
  for (const std::string& assumption : reply.assumptions) text += format_text("- " + assumption, 2);
  return text;
}

std::string format_forecast_json(const ForecastReply& reply) {
  Json json = {{"schema_version", kPlanJsonVersion}};
  json.update(to_json(reply, schema::JsonView::kShown));
  json["asked"] = row_json(reply.asked);
  json["table"] = Json::array();
  for (const ForecastRow& row : reply.table) json["table"].push_back(row_json(row));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tg::ctl

#include "ctl/plan/plan_report.h"

#include "ctl/format/table.h"
#include "ctl/plan/link_rate.h"
#include "kernels/base/words.h"
#include "schema/described/json_form.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;
using schema::ForecastReply;
using schema::ForecastRow;
using schema::Outcome;

// A factor with three digits: 0.45, 3.96, 39.6, 396.
std::string times(double value) {
  return value > 0 ? format_fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) : "-";
}

std::string seconds(double value) { return value > 0 ? format_seconds(value) : "-"; }

std::string rate(double value) { return value > 0 ? format_fixed(value, value < 100 ? 1 : 0) : "-"; }

// A table with a line for each part of a step, and a column for each exchange.
std::string split_table(const ForecastRow& row) {
  Rows rows{{"N = " + std::to_string(row.nodes), "DIRECT", "SHARDED"}};
  const auto add = [&](const char* name, auto text_of) {
    rows.push_back({name, text_of(row.direct), text_of(row.sharded)});
  };
  add("compute", [](const Outcome& outcome) { return seconds(outcome.compute); });
  add("processor", [](const Outcome& outcome) { return seconds(outcome.processor); });
  add("wire", [](const Outcome& outcome) { return seconds(outcome.wire); });
  add("step", [](const Outcome& outcome) { return seconds(outcome.step); });
  add("bound by", bound_of);
  add("sent", [](const Outcome& outcome) { return format_bytes(outcome.sent_bytes); });
  add("samples/s", [](const Outcome& outcome) { return rate(outcome.samples_per_second); });
  add("x one node", [](const Outcome& outcome) { return times(outcome.speed_up); });
  return format_table(rows) +
         format_text(
             "processor: time to encode, send and receive. The parts overlap, so a step takes less than their sum.");
}

std::string size_table(const ForecastReply& reply) {
  Rows rows{{"N", "BATCH", "DIRECT", "X ONE", "SHARDED", "X ONE"}};
  for (const ForecastRow& row : reply.table)
    rows.push_back({std::to_string(row.nodes), std::to_string(row.local_batch), seconds(row.direct.step),
                    times(row.direct.speed_up), seconds(row.sharded.step), times(row.sharded.speed_up)});
  return format_table(rows) + format_text("BATCH: samples per node. X ONE: speed-up over one node.");
}

}  // namespace

std::string bound_of(const Outcome& step) {
  if (step.compute >= step.wire && step.compute >= step.processor) return "computing";
  return step.wire >= step.processor ? "link" : "processor";
}

std::string format_forecast(const ForecastReply& reply) {
  const std::string link = reply.line_mbps > 0 ? format_link(reply.line_mbps) + ", " : "as measured: ";
  std::string text = format_table({
      {"model",
       reply.model + ", " + std::to_string(reply.parameters) + " parameters, compute = " + to_word(reply.compute)},
      {"batch", std::to_string(reply.asked.global_batch) + " samples per step, " +
                    std::to_string(reply.asked.local_batch) + " per node"},
      {"link", link + format_mbps(reply.payload_mbps) + " of payload"},
      {"cores", format_fixed(reply.cores, 0) + " per node"},
      {"auto", reply.exchange + ", coding " + reply.coding + ", as a start would choose"},
  });
  text += "\n" + split_table(reply.asked) + "\n" + size_table(reply) + "\nassumed:\n";
  for (const std::string& assumption : reply.assumptions) text += format_text("- " + assumption, 2);
  return text;
}

std::string format_forecast_json(const ForecastReply& reply) {
  Json json = {{"schema_version", kPlanJsonVersion}};
  json.update(to_json(reply, schema::JsonView::kShown));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tg::ctl

#include "ctl/plan/bench_report.h"

#include "ctl/format/table.h"
#include "schema/described/json_form.h"

namespace tg::ctl {
namespace {

using Json = schema::OrderedJson;

std::string link_text(const schema::BenchReply& bench) {
  if (bench.members < 2) return "no other node to measure with";
  if (bench.link_mbps <= 0) return "not measured: a peer did not answer";
  return format_mbps(bench.link_mbps) + " of payload towards " + std::to_string(bench.members - 1) +
         (bench.members == 2 ? " peer" : " peers at once");
}

}  // namespace

std::string format_bench(const schema::BenchReply& bench) {
  std::string text = format_table({
      {"node", bench.node + ", tgd " + bench.build},
      {"cores",
       std::to_string(bench.cores) + ", " + std::to_string(bench.threads) + " compute; kernels " + bench.kernels},
      {"computes on", bench.device.empty() ? "the processor" : bench.device + ", " + bench.math},
      {"link", link_text(bench)},
      {"round trip", bench.round_trip_seconds > 0 ? format_seconds(bench.round_trip_seconds) : "-"},
  });
  Rows codec{{"KERNEL, ONE CORE", "G ELEMENTS/S"}};
  for (const schema::KernelRate& rate : bench.codec) codec.push_back({rate.kernel, format_fixed(rate.rate, 2)});
  text += "\n" + format_table(codec);
  Rows compute{{"FORWARD AND BACKWARD", "PER SAMPLE", "SAMPLES/S", "GFLOP/S"}};
  for (const schema::ComputeRate& rate : bench.compute)
    compute.push_back({rate.model + ", batch " + std::to_string(rate.batch), format_seconds(rate.seconds_per_sample),
                       format_fixed(1 / rate.seconds_per_sample, 0), format_fixed(rate.gflops, 1)});
  text += "\n" + format_table(compute);
  text += format_text(bench.saved.empty() ? "not saved: the node could not write its state-dir"
                                          : "saved by " + bench.node + " in " + bench.saved + " for tgctl plan");
  return text;
}

std::string format_bench_json(const schema::BenchReply& bench) {
  Json json = {{"schema_version", kBenchJsonVersion}};
  json.update(to_json(bench, schema::JsonView::kShown));
  json["link"] = {{"payload_mbps", json["link_mbps"]}, {"round_trip_seconds", json["round_trip_seconds"]}};
  json.erase("link_mbps");
  json.erase("round_trip_seconds");
  for (Json& one : json["link"])
    if (one == 0) one = nullptr;
  for (Json& one : json["codec"]) one = {{"kernel", one["kernel"]}, {"gelements_per_second", one["rate"]}};
  if (bench.device.empty()) json["device"] = nullptr;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tg::ctl

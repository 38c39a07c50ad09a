#include "ctl/plan/bench_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ctl/format/table.h"

namespace tg::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return value > 0 && std::isfinite(value) ? Json(value) : Json(nullptr); }

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
  Json codec = Json::array(), compute = Json::array();
  for (const schema::KernelRate& rate : bench.codec)
    codec.push_back({{"kernel", rate.kernel}, {"gelements_per_second", rate.rate}});
  for (const schema::ComputeRate& rate : bench.compute)
    compute.push_back({{"model", rate.model},
                       {"batch", rate.batch},
                       {"seconds_per_sample", rate.seconds_per_sample},
                       {"gflops", rate.gflops}});
  const Json json = {
      {"schema_version", kBenchJsonVersion},
      {"node", bench.node},
      {"build", bench.build},
      {"measured_ms", bench.measured_ms},
      {"members", bench.members},
      {"cores", bench.cores},
      {"threads", bench.threads},
      {"kernels", bench.kernels},
      {"device", bench.device.empty() ? Json(nullptr) : Json(bench.device)},
      {"math", bench.math},
      {"link", {{"payload_mbps", number(bench.link_mbps)}, {"round_trip_seconds", number(bench.round_trip_seconds)}}},
      {"codec", std::move(codec)},
      {"compute", std::move(compute)},
      {"saved", bench.saved.empty() ? Json(nullptr) : Json(bench.saved)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tg::ctl

// What `tgctl bench` and `tgctl plan` ask and what a node answers: measured speeds of a node and its link, and
// predictions for meshes of any size. Values, described once (schema/described/rule.h). Seconds unless the name says
// otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/choices.h"
#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

// Measure link, codec and compute of the asked node, and keep what was found for predictions.
struct BenchRequest {};
void fields(Is<BenchRequest> auto&, auto&&) {}

// One exchange kernel on one core, with arrays past the caches.
struct KernelRate {
  std::string kernel;  // a field of KernelCosts (daemon/forecast/machine.h)
  double rate = 0;     // 10^9 elements per second
};
void fields(Is<KernelRate> auto& it, auto&& field) {
  field("kernel", it.kernel, word());
  field("rate", it.rate, real());
}
// Forward and backward of a model on the node's threads.
struct ComputeRate {
  std::string model;
  std::uint64_t batch = 0;
  double seconds_per_sample = 0;
  double gflops = 0;  // of convolutions and dense layers
};
void fields(Is<ComputeRate> auto& it, auto&& field) {
  field("model", it.model, word());
  field("batch", it.batch);
  field("seconds_per_sample", it.seconds_per_sample, real());
  field("gflops", it.gflops, real().called("rate"));
}

struct BenchReply {
  std::string node, build, kernels;  // kernels: the instruction set's name
  std::int64_t measured_ms = 0;      // Unix time
  std::uint64_t members = 0;         // of the mesh, all of them reached at once
  std::uint64_t cores = 0, threads = 0;
  double link_mbps = 0;  // payload towards all peers at once; 0 = no peer answered
  double round_trip_seconds = 0;
  std::vector<KernelRate> codec;
  std::vector<ComputeRate> compute;
  std::string saved;         // where on the node; empty = could not be written
  std::string device, math;  // what computed; no device = the processor
};
void fields(Is<BenchReply> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("build", it.build, line(kMaxBuildBytes));
  field("kernels", it.kernels, word());
  field("measured_ms", it.measured_ms);
  field("members", it.members, between(1, kMaxMembers));
  field("cores", it.cores);
  field("threads", it.threads);
  field("link_mbps", it.link_mbps, real().called("link rate"));
  field("round_trip_seconds", it.round_trip_seconds, real().called("round trip"));
  field("codec", it.codec, list(kMaxKernelRates).list_called("kernel rates"));
  field("compute", it.compute, list(kMaxComputeRates).list_called("compute rates"));
  field("saved", it.saved, line(kMaxPathBytes).called("path").not_kept().null());
  field("device", it.device, line(kMaxDeviceBytes));
  field("math", it.math, word());
}

struct ForecastRequest {
  std::string spec;  // canonical job
  std::uint64_t nodes = 0;
  double line_mbps = 0;  // 0 = the job's link-mbps, else as measured
  double cores = 0;      // per node; 0 = the asked node's
};
void fields(Is<ForecastRequest> auto& it, auto&& field) {
  field("spec", it.spec, lines(kMaxSpecBytes));
  field("nodes", it.nodes, between(1, kMaxForecastNodes));
  field("line_mbps", it.line_mbps, up_to(kMaxLineMbps).called("line rate"));
  field("cores", it.cores, between(kMinCores, kMaxCores).or_not_told());
}

// One way to exchange, one number of nodes: where the seconds of a step go. The parts overlap; `step` is no sum.
struct Outcome {
  double sent_bytes = 0;
  double compute = 0;
  double processor = 0;  // what the exchange takes of a processor: its kernels and TCP
  double wire = 0;
  double step = 0;
  double samples_per_second = 0;
  double speed_up = 0;  // over one node
};
void fields(Is<Outcome> auto& it, auto&& field) {
  field("sent_bytes", it.sent_bytes, real());
  field("compute", it.compute, real().named("compute_seconds"));
  field("processor", it.processor, real().named("processor_seconds"));
  field("wire", it.wire, real().named("wire_seconds"));
  field("step", it.step, real().named("step_seconds"));
  field("samples_per_second", it.samples_per_second, real().null());
  field("speed_up", it.speed_up, real().called("speed-up").named("over_one_node").null());
}

struct ForecastRow {
  std::uint64_t nodes = 0, local_batch = 0, global_batch = 0;
  Outcome direct, sharded, ring;
};
void fields(Is<ForecastRow> auto& it, auto&& field) {
  field("nodes", it.nodes, between(1, kMaxForecastNodes));
  field("local_batch", it.local_batch);
  field("global_batch", it.global_batch);
  field("direct", it.direct);
  field("sharded", it.sharded);
  field("ring", it.ring);
}

struct ForecastReply {
  std::string node, model;
  Compute compute = Compute::kTrain;
  std::uint64_t parameters = 0;
  double line_mbps = 0;     // told; 0 = the measured payload rate was used
  double payload_mbps = 0;  // used
  double cores = 0;
  std::int64_t measured_ms = 0;  // of the bench behind it; 0 = speeds are assumed
  bool measured_now = false;     // there was none: this request made it
  std::string exchange, coding;  // as a start of the job chooses at the asked N; coding of all rows
  ForecastRow asked;
  std::vector<ForecastRow> table;
  std::vector<std::string> assumptions;
};
void fields(Is<ForecastReply> auto& it, auto&& field) {
  field("node", it.node, node_name());
  field("model", it.model, word());
  field("compute", it.compute);
  field("parameters", it.parameters);
  field("line_mbps", it.line_mbps, up_to(kMaxLineMbps).called("line rate").null());
  field("payload_mbps", it.payload_mbps, real().called("payload rate"));
  field("cores", it.cores, between(kMinCores, kMaxCores));
  field("measured_ms", it.measured_ms);
  field("measured_now", it.measured_now);
  field("exchange", it.exchange, word());
  field("coding", it.coding, word());
  field("asked", it.asked);
  field("table", it.table, list(kMaxForecastRows).list_called("rows"));
  field("assumptions", it.assumptions, list(kMaxAssumptions, line(kMaxAssumptionBytes)).called("assumption"));
}

}  // namespace tg::schema

// What `tgctl plan` asks and what a node answers: predictions for meshes of any size. Values, described once
// (schema/described/rule.h). Seconds unless the name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/choices.h"
#include "schema/described/rule.h"
#include "schema/limits.h"

namespace tg::schema {

struct ForecastRequest {
  std::string spec;  // canonical job
  std::uint64_t nodes = 0;
  double line_mbps = 0;        // 0 = the job's link-mbps, else as measured
  double compute_seconds = 0;  // a node's part of a step; 0 = as timed on the asked node
};
void fields(Is<ForecastRequest> auto& it, auto&& field) {
  field("spec", it.spec, lines(kMaxSpecBytes));
  field("nodes", it.nodes, between(1, kMaxMembers));
  field("line_mbps", it.line_mbps, up_to(kMaxLineMbps).called("line rate"));
  field("compute_seconds", it.compute_seconds, real());
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
  Outcome direct, sharded;
};
void fields(Is<ForecastRow> auto& it, auto&& field) {
  field("nodes", it.nodes, between(1, kMaxMembers));
  field("local_batch", it.local_batch);
  field("global_batch", it.global_batch);
  field("direct", it.direct);
  field("sharded", it.sharded);
}

struct ForecastReply {
  std::string node, model;
  Compute compute = Compute::kTrain;
  std::uint64_t parameters = 0;
  double line_mbps = 0;          // told; 0 = the measured payload rate was used
  double payload_mbps = 0;       // used
  double cores = 0;              // per node
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
  field("cores", it.cores, real());
  field("exchange", it.exchange, word());
  field("coding", it.coding, word());
  field("asked", it.asked);
  field("table", it.table, list(kMaxForecastRows).list_called("rows"));
  field("assumptions", it.assumptions, list(kMaxAssumptions, line(kMaxAssumptionBytes)).called("assumption"));
}

}  // namespace tg::schema

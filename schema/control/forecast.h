// What `tgctl bench` and `tgctl plan` ask and what a node answers: measured speeds of a node and its link, and
// predictions for meshes of any size. Values; their Cap'n Proto form is in control_forecast.cpp. Seconds unless the
// name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/choices.h"

namespace tg::schema {

// Measure link, codec and compute of the asked node, and keep what was found for predictions.
struct BenchRequest {};

// One exchange kernel on one core, with arrays past the caches.
struct KernelRate {
  std::string kernel;  // a field of KernelCosts (daemon/forecast/machine.h)
  double rate = 0;     // 10^9 elements per second
};
// Forward and backward of a model on the node's threads.
struct ComputeRate {
  std::string model;
  std::uint64_t batch = 0;
  double seconds_per_sample = 0;
  double gflops = 0;  // of convolutions and dense layers
};
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

struct ForecastRequest {
  std::string spec;  // canonical job
  std::uint64_t nodes = 0;
  double line_mbps = 0;  // 0 = the job's link-mbps, else as measured
  double cores = 0;      // per node; 0 = the asked node's
};

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
struct ForecastRow {
  std::uint64_t nodes = 0, local_batch = 0, global_batch = 0;
  Outcome direct, sharded, ring;
};
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

}  // namespace tg::schema

// The step of one node as a pipeline of buckets, each with its work on a processor and its time on the link. Pure.
//
//   exchange threads  begin a bucket when backward has it:   c_j = max(c_j-1, ready_j) + thread_j / speed
//   link              begins when its first chunk is coded:  w_j = max(w_j-1, ready_j + lead_j / share) + wire_j
//   processors        (compute + all of the exchange) / cores, x kSharedCore below one core
//   step = max(c_last + last_wire, w_last + last_cpu / share, processors, compute) + trips * trip / share
//
// share = min(cores, 1): with less than a core to itself, everything on a processor takes longer, waking up included.
// speed = share * crew: several threads carry out pieces side by side. lead and last are one piece each: only one
// thread can work on it.
#pragma once

#include <vector>

#include "daemon/exchange/layout.h"
#include "daemon/forecast/machine.h"
#include "engine/model.h"

namespace tg::daemon {

// Nodes that share a core wait for each other's turns: their steps took 3 to 15 % longer than their processor time
// alone (AlexNet and GoogLeNet replayed, 4 and 8 nodes on two cores).
inline constexpr double kSharedCore = 1.05;

// Processor time of TCP and ZeroMQ for a byte of payload that is sent or taken. Together with kFrameSeconds it explains
// profiles of replayed steps (LeNet to AlexNet, 2 to 8 nodes, on links that carry packets of a frame's size) within 15
// to 25 %.
inline constexpr double kByteSeconds = 0.9e-9;
// Handling a frame beside its payload: queues on each side, wake-ups, headers, system calls. As kByteSeconds.
inline constexpr double kFrameSeconds = 22e-6;

// Processor seconds of one member's kernels in a step of this layout, of at least two members.
double kernel_seconds(const Layout& layout, const KernelCosts& costs);

struct StepModel {
  struct Bucket {
    double ready = 0;   // seconds after the step began
    double wire = 0;    // seconds on the link
    double lead = 0;    // processor seconds from ready to the first byte
    double thread = 0;  // processor seconds of the exchange's kernels
  };
  std::vector<Bucket> buckets;
  double cores = 1;
  double crew = 1;               // the kernels' speed on all threads of the exchange over one
  double compute = 0;            // seconds of forward and backward
  double compute_processor = 0;  // processor seconds of them
  double last_cpu = 0;           // processor seconds from the last payload's arrival to the commit
  double last_wire = 0;          // seconds of the last chunk on the link
  double trips = 0;              // that nothing hides
  double kernels = 0;            // processor seconds of the exchange's kernels
  double network = 0;            // and of the system's TCP and ZeroMQ
  double sent_bits = 0;

  double processor() const { return kernels + network; }
  double share() const { return cores < 1 ? cores : 1; }
  double speed() const { return share() * crew; }
  double step_seconds(double trip_seconds) const;
};

// Where a step is predicted.
struct Surroundings {
  double payload_mbps = 0;  // of a node's link
  double cores = 1;
  double zeros = 0;
};

// Forward and backward of a node's part of a step.
struct Computing {
  double processor = 0, seconds = 0;
  double workers = 1;  // threads of the exchange beside them
};

// When backward has each bucket, as a share of the computing: forward takes a third, backward the rest, each layer by
// its operations.
std::vector<double> ready_shares(const engine::Model& model, const Layout& layout);

// A step of tgd with this layout; layout.members may be more than it was cut for.
StepModel model_step(const Layout& layout, const engine::Model& model, const Machine& machine,
                     const Surroundings& where, const Computing& computing);

// A float32 ring all-reduce of the same buckets: 2 (N-1)/N * 32 bits of each parameter, at line rate, without a trip
// and without a cost on a processor.
StepModel model_ring(const Layout& layout, const engine::Model& model, const Surroundings& where,
                     const Computing& computing);

}  // namespace tg::daemon

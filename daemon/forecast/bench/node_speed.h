// Codec and compute of this node, measured with its link idle: what `bench` reports beside the link. Blocking, some
// seconds; any thread, the node's own one aside.
#pragma once

#include <cstdint>
#include <stop_token>

#include "engine/compute_device.h"
#include "kernels/base/status.h"
#include "kernels/kernels.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

struct NodeUnderTest {
  const kernels::Kernels& kernels;
  const engine::ComputeDevice& compute;
  int threads = 1;
  std::uint64_t memory_bytes = 0;  // that may be taken
  std::stop_token stop = {};       // looked at between kernels
};

// Fills codec and compute of the reply. An error where there is too little memory, where the engine fails or
// where it was stopped; never throws.
Status measure_node(const NodeUnderTest& node, schema::BenchReply& bench);

}  // namespace tg::daemon

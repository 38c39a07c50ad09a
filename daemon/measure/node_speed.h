// Codec and compute of this node, measured with its link idle: what `bench` reports beside the link. Blocking, about
// two seconds; any thread, the node's own one aside.
#pragma once

#include "kernels/base/status.h"
#include "kernels/kernels.h"
#include "schema/forecast.h"

namespace tg::daemon {

// Fills roofs, codec and compute of the reply; the error is the engine's.
Status measure_node(const kernels::Kernels& kernels, int threads, schema::BenchReply& bench);

}  // namespace tg::daemon

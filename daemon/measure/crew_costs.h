// CodecCosts of an exchange on several threads: all of them measured at once, since they share a memory that one may
// use up alone. Takes as long as one measurement and its threads; any thread.
#pragma once

#include "daemon/measure/codec_costs.h"

namespace tg::daemon {

// Seconds per element of `workers` threads together, each with its own part of a model of so many parameters. The
// network's share is that of one thread: the sockets have theirs.
CodecCosts measure_crew(const kernels::Kernels& kernels, std::size_t workers, std::size_t parameters,
                        std::size_t members, double zeros, std::size_t most_elements = kMeasuredElements);

}  // namespace tg::daemon

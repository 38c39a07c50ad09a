// CodecCosts of an exchange on several threads, or on the processors there are for them: each kernel runs on all of
// them at once, since they share a memory that one may use up alone. About as long as measure_codec; any thread. Throws
// where there is no memory or no thread.
#pragma once

#include "daemon/forecast/bench/codec_timer.h"

namespace tg::daemon {

// Seconds per element of `workers` threads together, each with its own part of the model. The network's share is that
// of one thread: the sockets have theirs.
CodecCosts measure_crew(const kernels::Kernels& kernels, std::size_t workers, const CodecCase& what,
                        const CodecTiming& timing = {});

}  // namespace tg::daemon

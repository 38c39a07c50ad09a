// Gradient accumulation: an engine whose batch is computed in parts, so that a model's activations need the memory of
// one part only. Wraps an engine that was made with batch = micro_batch and owns it; the contract is engine.h's.
//
// forward goes forward and back through all parts but the last, and forward through the last; backward goes back
// through that, and adds what the others gave before the sink sees a segment. Hence the gate is asked by the first part
// alone, and the gradient of a whole batch comes out but for the rounding of its sums: parts are added in their order,
// in float32. Dropout's masks are those of the whole batch (Batch::first_position advances). Each batch normalization
// normalizes with its part's statistics, as smaller batches would; what the step measured is the mean over the parts.
// Parts lie in the batch's memory; each is prefetched while the one before goes back, the first as the next batch is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/engine.h"
#include "kernels/home.h"

namespace tg::engine {

struct MicroBatchOptions {
  int batch = 1;                           // samples of every training batch; a multiple of micro_batch
  int micro_batch = 1;                     // samples of a part
  std::function<void()> advanced = [] {};  // called when a part of a forward is done, on its thread
};

// What the parts need beside the engine: the sums of gradients. 0 where there is one part only.
std::uint64_t micro_batch_bytes(const Model& model, int batch, int micro_batch);

// home: where the engine computes; it outlives what is returned. Takes one array of gradients there, two if there are
// more than two parts: activation_bytes counts them. Throws std::bad_alloc.
std::unique_ptr<Engine> make_micro_batches(std::unique_ptr<Engine> engine, kernels::Home& home,
                                           const MicroBatchOptions& options);

}  // namespace tg::engine

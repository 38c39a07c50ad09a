// Gradient accumulation: an engine whose batch is computed in parts, so that a model's activations need the memory of
// one part only. Wraps an engine that was made with batch = micro_batch and owns it; the contract is engine.h's.
//
// forward runs forward and backward of all parts but the last, and forward of the last; backward runs its backward, and
// adds the other parts' gradients before the sink sees a segment. So only the first part calls the gate, and the result
// is the gradient of the whole batch except for the rounding of its sums: parts are added in order, in float32.
// Dropout's masks are those of the whole batch (Batch::first_position advances). Each batch normalization normalizes
// with its part's statistics, as with smaller batches; what the step measured is the mean over the parts. Parts lie in
// the batch's memory; each is prefetched during the backward of the one before, the first when the next batch is.
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
  std::function<void()> advanced = [] {};  // called on forward's thread when a part is done
};

// The memory that parts need besides the engine's: the sums of gradients. 0 if there is only one part.
std::uint64_t micro_batch_bytes(const Model& model, int batch, int micro_batch);

// home: the engine's home, which must outlive the result. Allocates one array of gradients there, two if there are more
// than two parts: activation_bytes counts them. Throws std::bad_alloc.
std::unique_ptr<Engine> make_micro_batches(std::unique_ptr<Engine> engine, kernels::Home& home,
                                           const MicroBatchOptions& options);

}  // namespace tg::engine

// Gradient accumulation: an engine whose batch is computed in parts, so that a model's activations need the memory of
// one part only. Wraps an engine that was made for the samples of a part, and another one for a shorter last part where
// parts do not come out even; owns both. The contract is engine.h's. Evaluation is the first engine's.
//
// forward runs forward and backward of all parts but the last, and forward of the last; backward runs its backward, and
// adds the other parts' gradients before the sink sees a segment. So only the first part calls the gate, and the result
// is the gradient of the whole batch except for the rounding of its sums: parts are added in order, in float32.
// Dropout's masks are those of the whole batch (Batch::first_position advances). Each batch normalization normalizes
// with its part's statistics, as with smaller batches; what the step measured is the mean over the parts, weighted by
// their samples. Parts lie in the batch's memory; each is prefetched during the backward of the one before, the first
// when the next batch is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "kernels/memory_space.h"

namespace tg::engine {

struct MicroBatchOptions {
  int batch = 1;                           // samples of every training batch
  int micro_batch = 1;                     // samples of a part, or fewer: part_sizes
  int least = 1;                           // samples of a part, or more
  std::function<void()> advanced = [] {};  // called on forward's thread when a part is done
};

// What engines are needed for: 7 samples in parts of 3 are {3, 1}, 6 are {3, 0}, 2 are {2, 0}.
struct PartSizes {
  int each = 1;  // samples of a part
  int last = 0;  // samples of another last part; 0 = there is none
};
// micro_batch: 0 = the whole batch. least: 1 or 2. No part has one sample if two are the least: 7 samples in parts of 3
// are {2, 3}, and in parts of 2, which is one too few, as well.
PartSizes part_sizes(int batch, int micro_batch, int least = 1);

// The batch normalization of one pixel, which needs two samples at once; "" if the model has none.
std::string one_pixel_normalization(const Model& model);

// The memory that parts need besides the engines': the sums of gradients. 0 if there is only one part.
std::uint64_t micro_batch_bytes(const Model& model, int batch, int micro_batch);

// last: for a shorter last part; null if and only if there is none. space: the engines', which must outlive the
// result. Allocates one array of gradients there, two if there are more than two parts: activation_bytes counts them.
// Throws std::bad_alloc.
std::unique_ptr<Engine> make_micro_batches(std::unique_ptr<Engine> engine, kernels::MemorySpace& space,
                                           const MicroBatchOptions& options, std::unique_ptr<Engine> last = nullptr);

}  // namespace tg::engine

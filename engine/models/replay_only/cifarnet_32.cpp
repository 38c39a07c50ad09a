#include "engine/models/models.h"
#include "engine/models/replay_only/segment_list.h"

namespace tg::engine {

// CifarNet on whole 32x32 images (8x8x64 into fc1): 1,756,426 parameters.
Result<Model> make_cifarnet_32(const ModelOptions& options) {
  return SegmentList(to_word(options.kind), {3, 32, 32})
      .convolution("conv1", 3, 64, 5)
      .convolution("conv2", 64, 64, 5)
      .dense("fc1", 64 * 8 * 8, 384)
      .dense("fc2", 384, 192)
      .dense("fc3", 192, 10)
      .build();
}

}  // namespace tg::engine

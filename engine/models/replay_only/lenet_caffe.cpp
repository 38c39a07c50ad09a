#include "engine/models/models.h"
#include "engine/models/replay_only/segment_list.h"

namespace tg::engine {

// Caffe's LeNet (no padding, hence 4x4x50 into fc1): 431,080 parameters.
Result<Model> make_lenet_caffe(const ModelOptions& options) {
  return SegmentList(to_word(options.kind), {1, 28, 28})
      .convolution("conv1", 1, 20, 5)
      .convolution("conv2", 20, 50, 5)
      .dense("fc1", 50 * 4 * 4, 500)
      .dense("fc2", 500, 10)
      .build();
}

}  // namespace tg::engine

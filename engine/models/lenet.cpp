#include "engine/models/builder.h"

namespace tg::engine {

// The paper's LeNet (SAME padding, hence 7x7x50 into fc1): 1,256,080 parameters. Weight decay on every weight.
Model make_lenet() {
  ModelBuilder builder(to_word(ModelKind::kLenet), {1, 28, 28});
  builder.convolution("conv1", 20, 5, {.weight_deviation = 0.05, .bias_value = 0, .decays = true})
      .relu()
      .max_pooling(2, 2)
      .convolution("conv2", 50, 5, {.weight_deviation = 0.05, .bias_value = 0, .decays = true})
      .relu()
      .max_pooling(2, 2)
      .dense("fc1", 500, {.weight_deviation = 0.048, .bias_value = 0, .decays = true})
      .relu()
      .dense("fc2", 10, {.weight_deviation = 0.0767, .bias_value = 0, .decays = true});
  return builder.build();
}

}  // namespace tg::engine

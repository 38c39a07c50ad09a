#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// The paper's LeNet (SAME padding, hence 7x7x50 into fc1): 1,256,080 parameters. Weight decay on every weight.
Result<Model> make_lenet(const ModelOptions& options) {
  ModelBuilder builder(to_word(options.kind), *options.input);
  builder.convolution("conv1", {20, 5}, {.weight_deviation = 0.05, .decays = true})
      .relu()
      .max_pooling({2, 2})
      .convolution("conv2", {50, 5}, {.weight_deviation = 0.05, .decays = true})
      .relu()
      .max_pooling({2, 2})
      .dense("fc1", 500, {.weight_deviation = 0.048, .decays = true})
      .relu()
      .dense("fc2", options.classes, {.weight_deviation = 0.0767, .decays = true});
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

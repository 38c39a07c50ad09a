#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// The paper's CifarNet on 24x24 crops: 1,068,298 parameters. Weight decay on fc1 and fc2 only.
Result<Model> make_cifarnet(const ModelOptions& options) {
  const LocalResponseNormalization normalization{.radius = 4, .bias = 1.0F, .alpha = 0.001F / 9.0F, .beta = 0.75F};
  ModelBuilder builder(to_word(options.kind), *options.input);
  builder.convolution("conv1", {64, 5}, {.weight_deviation = 0.05})
      .relu()
      .max_pooling({3, 2})
      .normalization(normalization)
      .convolution("conv2", {64, 5}, {.weight_deviation = 0.05, .bias_value = 0.1})
      .relu()
      .normalization(normalization)
      .max_pooling({3, 2})
      .dense("fc1", 384, {.weight_deviation = 0.04, .bias_value = 0.1, .decays = true})
      .relu()
      .dense("fc2", 192, {.weight_deviation = 0.04, .bias_value = 0.1, .decays = true})
      .relu()
      .dense("fc3", options.classes, {.weight_deviation = 1.0 / 192.0});
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

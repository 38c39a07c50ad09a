#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// The AlexNet that the paper trains (terngrad/inception/slim/models.py): two columns, which mix before conv3 and fc6,
// batch normalization without gamma in every convolution, LRN after the first two: 60,969,321 parameters. A column is a
// group of channels. Dropout as for ternary gradients: 0.2; with float32 the paper has 0.5.
Result<Model> make_alexnet_two_column(const ModelOptions& options) {
  constexpr double kDropout = 0.2;
  constexpr Normalized kNormalized{.epsilon = 1e-3F, .momentum = 3e-4F, .gamma = false};
  constexpr LocalResponseNormalization kByColumn{.radius = 2, .bias = 2.0F, .alpha = 1e-4F, .beta = 0.75F, .groups = 2};
  constexpr Pool kPool{.kernel = 3, .stride = 2, .padding = 0};
  ModelBuilder builder(to_word(options.kind), *options.input);
  const auto convolution = [&](const std::string& name, Filters filters) -> ModelBuilder& {
    filters.bias = false;
    return builder.convolution(name, filters, {.weight_deviation = 0.01, .decays = true})
        .batch_normalization(name + ".bn", kNormalized)
        .relu();
  };
  convolution("conv1", {.count = 96, .kernel = 11, .stride = 4}).normalization(kByColumn).max_pooling(kPool);
  convolution("conv2", {.count = 256, .kernel = 5, .groups = 2}).normalization(kByColumn).max_pooling(kPool);
  convolution("conv3", {.count = 384, .kernel = 3});
  convolution("conv4", {.count = 384, .kernel = 3, .groups = 2});
  convolution("conv5", {.count = 256, .kernel = 3, .groups = 2}).max_pooling(kPool);
  const Parameters hidden{.weight_deviation = 0.005, .bias_value = 0.1, .decays = true};
  builder.dense("fc6", 4096, hidden).relu().dropout(kDropout);
  builder.dense("fc7", 4096, hidden).relu().dropout(kDropout);
  builder.dense("logits", options.classes, {.weight_deviation = 0.01, .decays = true});
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

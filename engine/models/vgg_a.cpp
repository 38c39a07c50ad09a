#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// torchvision's VGG with 11 layers (vgg11): 132,863,336 parameters.
Result<Model> make_vgg_a(const ModelOptions& options) {
  constexpr int kPool = 0;
  constexpr int kLayers[] = {64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool};
  ModelBuilder builder(to_word(options.kind), *options.input);
  int number = 0;  // number in torchvision's list, where each ReLU has one too
  for (const int filters : kLayers) {
    if (filters == kPool) {
      builder.max_pooling({.kernel = 2, .stride = 2, .padding = 0});
      ++number;
      continue;
    }
    builder.convolution("features." + std::to_string(number), {.count = filters, .kernel = 3, .padding = 1},
                        he_parameters(filters * 3 * 3));
    builder.relu();
    number += 2;
  }
  const Parameters classifier = normal_parameters(0.01);
  builder.adaptive_average(7, 7).flatten();
  builder.dense("classifier.0", 4096, classifier).relu().dropout(0.5);
  builder.dense("classifier.3", 4096, classifier).relu().dropout(0.5);
  builder.dense("classifier.6", options.classes, classifier);
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

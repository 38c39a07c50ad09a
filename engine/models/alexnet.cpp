#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// torchvision's AlexNet, one tower: 61,100,840 parameters.
Result<Model> make_alexnet(const ModelOptions& options) {
  ModelBuilder builder(to_word(options.kind), *options.input);
  const auto convolution = [&](const std::string& name, const Filters& filters) {
    const int fan_in = builder.shape().channels * filters.kernel * filters.kernel;
    builder.convolution(name, filters, uniform_parameters(fan_in)).relu();
  };
  const Pool pool{.kernel = 3, .stride = 2, .padding = 0};
  convolution("features.0", {.count = 64, .kernel = 11, .stride = 4, .padding = 2});
  builder.max_pooling(pool);
  convolution("features.3", {.count = 192, .kernel = 5, .padding = 2});
  builder.max_pooling(pool);
  convolution("features.6", {.count = 384, .kernel = 3, .padding = 1});
  convolution("features.8", {.count = 256, .kernel = 3, .padding = 1});
  convolution("features.10", {.count = 256, .kernel = 3, .padding = 1});
  builder.max_pooling(pool).adaptive_average(6, 6).flatten().dropout(0.5);
  builder.dense("classifier.1", 4096, uniform_parameters(256 * 6 * 6)).relu().dropout(0.5);
  builder.dense("classifier.4", 4096, uniform_parameters(4096)).relu();
  builder.dense("classifier.6", options.classes, uniform_parameters(4096));
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

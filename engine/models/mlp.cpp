#include "engine/models/builder.h"
#include "engine/models/models.h"

namespace tg::engine {

// Dense layers with ReLU between them, on features or flattened images: fc1, fc2, ... with options.hidden features,
// then the logits. They are initialized as PyTorch's nn.Linear.
Result<Model> make_mlp(const ModelOptions& options) {
  ModelBuilder builder(to_word(options.kind), *options.input);
  builder.flatten();
  int layer = 1;
  for (const int features : options.hidden)
    builder.dense("fc" + std::to_string(layer++), features, uniform_parameters(builder.shape().channels)).relu();
  builder.dense("fc" + std::to_string(layer), options.classes, uniform_parameters(builder.shape().channels));
  return builder.build(options.label_smoothing);
}

}  // namespace tg::engine

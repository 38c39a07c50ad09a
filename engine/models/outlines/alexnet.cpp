#include "engine/models/outlines/outline.h"

namespace tg::engine {

// AlexNet as torchvision lays it out (one tower): 61,100,840 parameters.
Model make_alexnet() {
  return ModelOutline(to_word(ModelKind::kAlexnet), {3, 224, 224})
      .convolution("features.0", 3, 64, 11)
      .convolution("features.3", 64, 192, 5)
      .convolution("features.6", 192, 384, 3)
      .convolution("features.8", 384, 256, 3)
      .convolution("features.10", 256, 256, 3)
      .dense("classifier.1", 256 * 6 * 6, 4096)
      .dense("classifier.4", 4096, 4096)
      .dense("classifier.6", 4096, 1000)
      .build();
}

}  // namespace tg::engine

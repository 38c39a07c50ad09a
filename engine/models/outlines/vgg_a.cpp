#include "engine/models/outlines/outline.h"

namespace tg::engine {

// VGG with 11 layers, as torchvision lays it out: 132,863,336 parameters.
Model make_vgg_a() {
  return ModelOutline(to_word(ModelKind::kVggA), {3, 224, 224})
      .convolution("features.0", 3, 64, 3)
      .convolution("features.3", 64, 128, 3)
      .convolution("features.6", 128, 256, 3)
      .convolution("features.8", 256, 256, 3)
      .convolution("features.11", 256, 512, 3)
      .convolution("features.13", 512, 512, 3)
      .convolution("features.16", 512, 512, 3)
      .convolution("features.18", 512, 512, 3)
      .dense("classifier.0", 512 * 7 * 7, 4096)
      .dense("classifier.3", 4096, 4096)
      .dense("classifier.6", 4096, 1000)
      .build();
}

}  // namespace tg::engine

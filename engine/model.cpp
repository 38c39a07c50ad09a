#include "engine/model.h"

#include "engine/models/builder.h"
#include "engine/models/outlines/outline.h"
#include "kernels/base/check.h"

namespace tg::engine {

Model make_model(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLenet:
      return make_lenet();
    case ModelKind::kCifarnet:
      return make_cifarnet();
    case ModelKind::kLenetCaffe:
      return make_lenet_caffe();
    case ModelKind::kCifarnet32:
      return make_cifarnet_32();
    case ModelKind::kGooglenet:
      return make_googlenet();
    case ModelKind::kAlexnet:
      return make_alexnet();
    case ModelKind::kVggA:
      return make_vgg_a();
  }
  TG_CHECK(false, static_cast<int>(kind));
}

}  // namespace tg::engine

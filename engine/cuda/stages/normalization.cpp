#include <stdexcept>
#include <string>

#include "engine/cuda/operators/images.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

constexpr float kBeta = 0.75F;  // the only exponent of operators/images.h

class NormalizationStage final : public Stage {
 public:
  NormalizationStage(const StageContext& context, const LocalResponseNormalization& layer)
      : Stage(context),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        wanted_(context.wants(0)),
        shape_{context.batch, input_.shape.channels, input_.shape.height * input_.shape.width, layer} {
    if (layer.beta != kBeta)
      throw std::runtime_error("its beta is " + std::to_string(layer.beta) +
                               "; this engine normalizes with beta 0.75 only");
  }

  void forward(const Pass& /*pass*/) override {
    normalization(shape_, input_.value.floats(), output_.value.floats(), library_.compute());
  }
  void backward_data(const Pass& /*pass*/) override {
    if (wanted_)
      normalization_gradient(shape_, input_.value.floats(), output_.gradient.floats(), input_.gradient.floats(),
                             library_.compute());
  }

 private:
  Library& library_;
  const Activation input_, output_;
  const bool wanted_;
  const NormalizationShape shape_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const LocalResponseNormalization& layer) {
  return std::make_unique<NormalizationStage>(context, layer);
}

}  // namespace tg::engine::cuda

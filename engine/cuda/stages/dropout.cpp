#include "engine/graph/dropout.h"

#include "engine/cuda/operators/images.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

// Training only. The mask is drawn again for backward: that costs no more than reading it would, and nothing is kept.
class DropoutStage final : public Stage {
 public:
  DropoutStage(const StageContext& context, const Dropout& layer)
      : Stage(context),
        library_(context.library),
        shape_(shape_of(context, layer)),
        input_(context.inputs[0]),
        output_(context.output),
        wanted_(context.wants(0)) {}

  void forward(const Pass& pass) override {
    dropout(shape_, pass.first_position, input_.value.floats(), output_.value.floats(), library_.compute());
  }
  void backward_data(const Pass& pass) override {
    if (wanted_)
      dropout(shape_, pass.first_position, output_.gradient.floats(), input_.gradient.floats(), library_.compute());
  }

 private:
  static DropoutShape shape_of(const StageContext& context, const Dropout& layer) {
    const DropoutMask mask(layer.probability, context.seed, context.plan.op);
    return {.samples = static_cast<std::size_t>(context.batch),
            .features = context.output.shape.elements(),
            .threshold = mask.threshold(),
            .index_of_operator = static_cast<std::uint32_t>(context.plan.op),
            .scale = mask.scale(),
            .seed = context.seed};
  }

  Library& library_;
  const DropoutShape shape_;
  const Activation input_, output_;
  const bool wanted_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Dropout& layer) {
  return std::make_unique<DropoutStage>(context, layer);
}

}  // namespace tg::engine::cuda

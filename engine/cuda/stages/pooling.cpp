#include <stdexcept>
#include <string>

#include "engine/cuda/operators/images.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

constexpr int kMaxPlaces = 255;  // places of a window: that of its maximum is kept in a byte

// Uses our own kernels: cuDNN's descriptor has one padding for both ends of a side.
class MaxPoolingStage final : public Stage {
 public:
  MaxPoolingStage(const StageContext& context, const MaxPooling& layer)
      : Stage(context),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        wanted_(context.wants(0)),
        mask_taken_(context.plan.mask_taken),
        shape_{context.batch * input_.shape.channels,
               {input_.shape.height, input_.shape.width},
               {output_.shape.height, output_.shape.width},
               layer.window} {
    if (layer.window.kernel * layer.window.kernel > kMaxPlaces)
      throw std::runtime_error("its window has " + std::to_string(layer.window.kernel * layer.window.kernel) +
                               " places; this engine pools over windows of " + std::to_string(kMaxPlaces) + " at most");
    if (wanted_) chosen_ = context.kept(context.floats(output_.shape));
  }

  void forward(const Pass& /*pass*/) override {
    max_pooling(shape_, input_.value.floats(), output_.value.floats(), chosen(), library_.compute());
  }
  void backward_data(const Pass& /*pass*/) override {
    if (wanted_)
      max_pooling_gradient(shape_, chosen(), output_.gradient.floats(), mask_taken_ ? output_.value.floats() : nullptr,
                           input_.gradient.floats(), library_.compute());
  }

 private:
  std::uint8_t* chosen() const { return wanted_ ? chosen_.as<std::uint8_t>() : nullptr; }

  Library& library_;
  const Activation input_, output_;
  const bool wanted_, mask_taken_;
  const PoolingShape shape_;
  View chosen_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const MaxPooling& layer) {
  return std::make_unique<MaxPoolingStage>(context, layer);
}

}  // namespace tg::engine::cuda

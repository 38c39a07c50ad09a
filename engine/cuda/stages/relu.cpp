#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

// A relu that no earlier layer has fused. Input and output may share memory, and so may their gradients.
class ReluStage final : public Stage {
 public:
  explicit ReluStage(const StageContext& context)
      : Stage(context),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        count_(context.floats(output_.shape)),
        wanted_(context.wants(0)) {}

  void forward(const Pass& /*pass*/) override {
    relu(count_, input_.value.floats(), output_.value.floats(), library_.compute());
  }
  void backward_data(const Pass& /*pass*/) override {
    if (wanted_)
      relu_gradient(count_, output_.value.floats(), output_.gradient.floats(), input_.gradient.floats(),
                    library_.compute());
  }

 private:
  Library& library_;
  const Activation input_, output_;
  const std::size_t count_;
  const bool wanted_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Relu& /*layer*/) {
  return std::make_unique<ReluStage>(context);
}

}  // namespace tg::engine::cuda

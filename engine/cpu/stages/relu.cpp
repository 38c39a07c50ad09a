#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

// A relu that no earlier layer has fused. Input and output may share memory, and so may their gradients.
class ReluStage final : public Stage {
 public:
  explicit ReluStage(const StageContext& context) : Stage(context) {
    const dnnl::memory &input = context.inputs[0].value, &output = context.output.value;
    const dnnl::memory::desc desc = output.get_desc();
    const auto forward = checked("choice of relu", [&] {
      return dnnl::eltwise_forward::primitive_desc(
          dnnl::eltwise_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::eltwise_relu, desc, 0.0F, 0.0F),
          attributes(), context.library.engine());
    });
    forward_ = Operation::make<dnnl::eltwise_forward>(context.library, context.name() + " forward", forward,
                                                      {{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, output}});
    if (context.wants(0)) backward_ = make_relu_mask(context, context.output, context.inputs[0].gradient);
  }

  void forward(const Pass& /*pass*/) override { forward_.run(); }
  void backward_data(const Pass& /*pass*/) override { backward_.run(); }

 private:
  Operation forward_, backward_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Relu& /*layer*/) {
  return std::make_unique<ReluStage>(context);
}

}  // namespace tg::engine::cpu

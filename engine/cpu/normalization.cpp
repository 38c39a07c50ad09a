#include "engine/cpu/operator.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

class NormalizationOperator final : public Operator {
 public:
  NormalizationOperator(const OperatorContext& context, const LocalResponseNormalization& layer) {
    const memory::desc desc = context.input.value.get_desc();
    output_ = make_activation(context, desc);
    const memory::dim window = 2 * layer.radius + 1;
    // oneDNN divides alpha by the window, TensorFlow's form does not.
    const float alpha = layer.alpha * static_cast<float>(window);

    const std::string name = context.name + " forward";
    const auto forward = checked("choice of " + name, [&] {
      return dnnl::lrn_forward::primitive_desc(
          dnnl::lrn_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::lrn_across_channels, desc, window, alpha, layer.beta, layer.bias),
          attributes(), context.device.engine());
    });
    Arguments arguments{{DNNL_ARG_SRC, context.input.value}, {DNNL_ARG_DST, output_.value}};
    memory workspace;
    const bool keeps = context.training && forward.workspace_desc().get_size() > 0;
    if (keeps) {
      workspace = context.device.allocate(forward.workspace_desc());
      arguments.emplace(DNNL_ARG_WORKSPACE, workspace);
    }
    forward_ = Operation::make<dnnl::lrn_forward>(context.device, name, forward, std::move(arguments));
    if (!context.training || !context.input_wants) return;

    const std::string back = context.name + " backward";
    const auto backward = checked("choice of " + back, [&] {
      return dnnl::lrn_backward::primitive_desc(dnnl::lrn_backward::desc(dnnl::algorithm::lrn_across_channels, desc,
                                                                         desc, window, alpha, layer.beta, layer.bias),
                                                attributes(), context.device.engine(), forward);
    });
    Arguments back_arguments{{DNNL_ARG_SRC, context.input.value},
                             {DNNL_ARG_DIFF_DST, output_.gradient},
                             {DNNL_ARG_DIFF_SRC, context.input.gradient}};
    if (keeps) back_arguments.emplace(DNNL_ARG_WORKSPACE, workspace);
    backward_ = Operation::make<dnnl::lrn_backward>(context.device, back, backward, std::move(back_arguments));
  }

  void forward(const float* /*parameters*/) override { forward_.run(); }
  void backward_data() override { backward_.run(); }

 private:
  Operation forward_, backward_;
};

}  // namespace

std::unique_ptr<Operator> make_normalization(const OperatorContext& context, const LocalResponseNormalization& layer) {
  return std::make_unique<NormalizationOperator>(context, layer);
}

}  // namespace tg::engine::cpu

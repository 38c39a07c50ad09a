#include "engine/cpu/operator.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

class MaxPoolingOperator final : public Operator {
 public:
  MaxPoolingOperator(const OperatorContext& context, const MaxPooling& layer, bool mask) {
    const memory::desc input = context.input.value.get_desc();
    const memory::dims dims = input.dims();
    const auto outputs = [&](std::int64_t inputs) {
      return (inputs + layer.pad_before + layer.pad_after - layer.kernel) / layer.stride + 1;
    };
    output_ = make_activation(context, image_desc({dims[0], dims[1], outputs(dims[2]), outputs(dims[3])}));
    const memory::desc output = output_.value.get_desc();
    const memory::dims strides{layer.stride, layer.stride}, kernel{layer.kernel, layer.kernel}, dilation{0, 0},
        before{layer.pad_before, layer.pad_before}, after{layer.pad_after, layer.pad_after};

    const std::string name = context.name + " forward";
    const auto forward = checked("choice of " + name, [&] {
      return dnnl::pooling_v2_forward::primitive_desc(
          dnnl::pooling_v2_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::pooling_max, input, output, strides, kernel, dilation, before, after),
          attributes(), context.device.engine());
    });
    Arguments arguments{{DNNL_ARG_SRC, context.input.value}, {DNNL_ARG_DST, output_.value}};
    memory workspace;
    if (context.training) {
      workspace = context.device.allocate(forward.workspace_desc());
      arguments.emplace(DNNL_ARG_WORKSPACE, workspace);
    }
    forward_ = Operation::make<dnnl::pooling_v2_forward>(context.device, name, forward, std::move(arguments));
    if (!context.training || !context.input_wants) return;

    if (mask) mask_ = make_relu_mask(context, output_);
    const std::string back = context.name + " backward";
    const auto backward = checked("choice of " + back, [&] {
      return dnnl::pooling_v2_backward::primitive_desc(
          dnnl::pooling_v2_backward::desc(dnnl::algorithm::pooling_max, input, output, strides, kernel, dilation,
                                          before, after),
          attributes(), context.device.engine(), forward);
    });
    backward_ = Operation::make<dnnl::pooling_v2_backward>(context.device, back, backward,
                                                           {{DNNL_ARG_DIFF_DST, output_.gradient},
                                                            {DNNL_ARG_WORKSPACE, workspace},
                                                            {DNNL_ARG_DIFF_SRC, context.input.gradient}});
  }

  void forward(const float* /*parameters*/) override { forward_.run(); }
  void backward_data() override {
    mask_.run();
    backward_.run();
  }

 private:
  Operation forward_, mask_, backward_;
};

}  // namespace

std::unique_ptr<Operator> make_max_pooling(const OperatorContext& context, const MaxPooling& layer, bool mask) {
  return std::make_unique<MaxPoolingOperator>(context, layer, mask);
}

}  // namespace tg::engine::cpu

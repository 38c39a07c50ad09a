#include <algorithm>

#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

class MaxPoolingStage final : public Stage {
 public:
  MaxPoolingStage(const StageContext& context, const MaxPooling& layer) : Stage(context) {
    const Window& window = layer.window;
    const memory::desc input = context.inputs[0].value.get_desc(), output = context.output.value.get_desc();
    // Padding after the image up to the end of the last window, which `ceil` may let begin that late.
    const auto after = [&](int side, int before, int asked) {
      const auto reach =
          static_cast<int>(output.dims()[side] - 1) * window.stride + window.dilation * (window.kernel - 1) + 1;
      return std::max<memory::dim>(asked, reach - before - static_cast<int>(input.dims()[side]));
    };
    const Padding& pad = window.padding;
    const memory::dims strides{window.stride, window.stride}, kernel{window.kernel, window.kernel},
        dilation{window.dilation - 1, window.dilation - 1}, before{pad.top, pad.left},
        behind{after(2, pad.top, pad.bottom), after(3, pad.left, pad.right)};

    const std::string name = context.name() + " forward";
    const auto forward = checked("choice of " + name, [&] {
      return dnnl::pooling_v2_forward::primitive_desc(
          dnnl::pooling_v2_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::pooling_max, input, output, strides, kernel, dilation, before, behind),
          attributes(), context.library.engine());
    });
    Arguments arguments{{DNNL_ARG_SRC, context.inputs[0].value}, {DNNL_ARG_DST, context.output.value}};
    memory workspace;
    if (context.training) {
      workspace = context.kept(forward.workspace_desc());
      arguments.emplace(DNNL_ARG_WORKSPACE, workspace);
    }
    forward_ = Operation::make<dnnl::pooling_v2_forward>(context.library, name, forward, std::move(arguments));
    if (!context.wants(0)) return;

    if (context.plan.mask_taken) mask_ = make_relu_mask(context, context.output, context.output.gradient);
    const std::string back = context.name() + " backward";
    const auto backward = checked("choice of " + back, [&] {
      return dnnl::pooling_v2_backward::primitive_desc(
          dnnl::pooling_v2_backward::desc(dnnl::algorithm::pooling_max, input, output, strides, kernel, dilation,
                                          before, behind),
          attributes(), context.library.engine(), forward);
    });
    backward_ = Operation::make<dnnl::pooling_v2_backward>(context.library, back, backward,
                                                           {{DNNL_ARG_DIFF_DST, context.output.gradient},
                                                            {DNNL_ARG_WORKSPACE, workspace},
                                                            {DNNL_ARG_DIFF_SRC, context.inputs[0].gradient}});
  }

  void forward(const Pass& /*pass*/) override { forward_.run(); }
  void backward_data(const Pass& /*pass*/) override {
    mask_.run();
    backward_.run();
  }

 private:
  Operation forward_, mask_, backward_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const MaxPooling& layer) {
  return std::make_unique<MaxPoolingStage>(context, layer);
}

}  // namespace tg::engine::cpu

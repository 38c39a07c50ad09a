#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

// The dimensions of PyTorch's weights for oneDNN: the same bytes, with the groups first if there are several.
memory::dims weight_dims(const Segment& weight, int groups) {
  const memory::dims& shape = weight.shape;
  if (groups == 1) return shape;
  return {groups, shape[0] / groups, shape[1], shape[2], shape[3]};
}

// Weights change every step and are small compared to the activations (LeNet's conv2: 100 KB). So each pass converts
// them to the layout that oneDNN picks, and converts their gradient back to OIHW.
class ConvolutionStage final : public Stage {
 public:
  ConvolutionStage(const StageContext& context, const Convolution& layer)
      : Stage(context), has_bias_(layer.bias.has_value()) {
    const Segment& weight = context.model.segments[layer.weight];
    weight_ = SegmentView(context, weight, weight_dims(weight, layer.groups));
    weight_gradient_ = SegmentView(context, weight, weight_dims(weight, layer.groups));
    if (has_bias_) {
      bias_ = SegmentView(context, context.model.segments[*layer.bias]);
      bias_gradient_ = SegmentView(context, context.model.segments[*layer.bias]);
    }
    const Geometry geometry(context, layer, weight_.memory(), bias_.memory());
    const auto forward = make_forward(context, geometry);
    if (!context.backward()) return;
    if (context.plan.relu && !context.plan.mask_left)
      mask_ = make_relu_mask(context, context.output, context.output.gradient);
    make_backward_weights(context, geometry, forward);
    if (context.wants(0)) make_backward_data(context, geometry, forward);
  }

  void forward(const Pass& pass) override {
    weight_.bind(pass.parameters);
    if (has_bias_) bias_.bind(pass.parameters);
    weight_to_forward_.run();
    forward_.run();
  }

  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    weight_gradient_.bind(gradients);
    if (has_bias_) bias_gradient_.bind(gradients);
    mask_.run();
    backward_weights_.run();
    gradient_to_canonical_.run();
  }

  void backward_data(const Pass& /*pass*/) override {
    weight_to_backward_.run();
    backward_data_.run();
  }

 private:
  struct Geometry {
    Geometry(const StageContext& context, const Convolution& layer, const memory& weight_view, const memory& bias_view)
        : input(context.inputs[0].value.get_desc()),
          weight(weight_view.get_desc().dims(), memory::data_type::f32, memory::format_tag::any),
          bias(layer.bias ? bias_view.get_desc() : memory::desc()),
          output(context.output.value.get_desc()),
          strides{layer.window.stride, layer.window.stride},
          dilation{layer.window.dilation - 1, layer.window.dilation - 1},
          before{layer.window.padding.top, layer.window.padding.left},
          after{layer.window.padding.bottom, layer.window.padding.right} {}
    // In oneDNN 2.6's kernels for 1x1 windows that stride, threads overwrite each other's copy of the input if it has
    // few channels (seen at 5 and 6, errors up to 0.4 of the norm). Weights in their plain layout avoid them, by a slow
    // implementation; no published model has such a layer.
    memory::desc weight_gradient(const memory::desc& plain) const {
      constexpr memory::dim kMaxLanes = 16;
      const memory::dims dims = plain.dims();
      const std::size_t rank = dims.size();
      const bool races =
          dims[rank - 1] == 1 && dims[rank - 2] == 1 && strides[0] > 1 && dims[rank - 3] % kMaxLanes != 0;
      return races ? plain : weight;
    }
    memory::desc input, weight, bias, output;  // bias: empty if there is none
    memory::dims strides, dilation, before, after;
  };

  dnnl::convolution_forward::primitive_desc make_forward(const StageContext& context, const Geometry& geometry) {
    const std::string name = context.name() + " forward";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::convolution_forward::primitive_desc(
          dnnl::convolution_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::convolution_direct, geometry.input, geometry.weight, geometry.bias, geometry.output,
              geometry.strides, geometry.dilation, geometry.before, geometry.after),
          context.plan.relu ? attributes_with_relu() : attributes(), context.library.engine());
    });
    memory weight = weight_.memory();
    if (description.weights_desc() != weight.get_desc()) {
      weight = context.forward_scratch(description.weights_desc());
      weight_to_forward_ = Operation::make_reorder(context.library, name + " reorder", weight_.memory(), weight);
    }
    Arguments arguments{
        {DNNL_ARG_SRC, context.inputs[0].value}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, context.output.value}};
    if (has_bias_) arguments.emplace(DNNL_ARG_BIAS, bias_.memory());
    forward_ = Operation::make<dnnl::convolution_forward>(context.library, name, description, std::move(arguments));
    return description;
  }

  void make_backward_weights(const StageContext& context, const Geometry& geometry,
                             const dnnl::convolution_forward::primitive_desc& hint) {
    const std::string name = context.name() + " backward weights";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::convolution_backward_weights::primitive_desc(
          dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, geometry.input,
                                                   geometry.weight_gradient(weight_gradient_.memory().get_desc()),
                                                   geometry.bias, geometry.output, geometry.strides, geometry.dilation,
                                                   geometry.before, geometry.after),
          attributes(), context.library.engine(), hint);
    });
    memory gradient = weight_gradient_.memory();
    if (description.diff_weights_desc() != gradient.get_desc()) {
      gradient = context.backward_scratch(description.diff_weights_desc());
      gradient_to_canonical_ =
          Operation::make_reorder(context.library, name + " reorder", gradient, weight_gradient_.memory());
    }
    Arguments arguments{{DNNL_ARG_SRC, context.inputs[0].value},
                        {DNNL_ARG_DIFF_DST, context.output.gradient},
                        {DNNL_ARG_DIFF_WEIGHTS, gradient}};
    if (has_bias_) arguments.emplace(DNNL_ARG_DIFF_BIAS, bias_gradient_.memory());
    backward_weights_ =
        Operation::make<dnnl::convolution_backward_weights>(context.library, name, description, std::move(arguments));
  }

  void make_backward_data(const StageContext& context, const Geometry& geometry,
                          const dnnl::convolution_forward::primitive_desc& hint) {
    const std::string name = context.name() + " backward data";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::convolution_backward_data::primitive_desc(
          dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, geometry.input, geometry.weight,
                                                geometry.output, geometry.strides, geometry.dilation, geometry.before,
                                                geometry.after),
          attributes(), context.library.engine(), hint);
    });
    memory weight = weight_.memory();
    if (description.weights_desc() != weight.get_desc()) {
      weight = context.backward_scratch(description.weights_desc());
      weight_to_backward_ = Operation::make_reorder(context.library, name + " reorder", weight_.memory(), weight);
    }
    backward_data_ =
        Operation::make<dnnl::convolution_backward_data>(context.library, name, description,
                                                         {{DNNL_ARG_DIFF_DST, context.output.gradient},
                                                          {DNNL_ARG_WEIGHTS, weight},
                                                          {DNNL_ARG_DIFF_SRC, context.inputs[0].gradient}});
  }

  const bool has_bias_;
  SegmentView weight_, bias_, weight_gradient_, bias_gradient_;
  Operation weight_to_forward_, forward_;
  Operation mask_, backward_weights_, gradient_to_canonical_;
  Operation weight_to_backward_, backward_data_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Convolution& layer) {
  return std::make_unique<ConvolutionStage>(context, layer);
}

}  // namespace tg::engine::cpu

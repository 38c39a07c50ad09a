#include "engine/cpu/operator.h"
#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

// Weights change every step and are small beside the activations (LeNet's conv2: 100 KB). So each pass brings them to
// the layout that oneDNN picks, and brings their gradient back to OIHW.
class ConvolutionOperator final : public Operator {
 public:
  ConvolutionOperator(const OperatorContext& context, const Convolution& layer, bool relu, bool mask)
      : segments_{layer.weight, layer.bias + 1},
        weight_(context, layer.weight),
        bias_(context, layer.bias),
        weight_gradient_(context, layer.weight),
        bias_gradient_(context, layer.bias) {
    TG_CHECK(layer.bias == layer.weight + 1, layer.weight, layer.bias);
    const Geometry geometry(context, layer);
    output_ = make_activation(context, geometry.output);
    const auto forward = make_forward(context, geometry, relu);
    if (!context.training) return;
    if (mask) mask_ = make_relu_mask(context, output_);
    make_backward_weights(context, geometry, forward);
    if (context.input_wants) make_backward_data(context, geometry, forward);
  }

  SegmentRange segments() const override { return segments_; }

  void forward(const float* parameters) override {
    weight_.bind(parameters);
    bias_.bind(parameters);
    weight_to_forward_.run();
    forward_.run();
  }

  void backward_parameters(float* gradients) override {
    weight_gradient_.bind(gradients);
    bias_gradient_.bind(gradients);
    mask_.run();
    backward_weights_.run();
    gradient_to_canonical_.run();
  }

  void backward_data() override {
    weight_to_backward_.run();
    backward_data_.run();
  }

 private:
  struct Geometry {
    Geometry(const OperatorContext& context, const Convolution& layer)
        : input(context.input.value.get_desc()),
          weight(memory::dims{layer.out_channels, layer.in_channels, layer.kernel, layer.kernel},
                 memory::data_type::f32, memory::format_tag::any),
          bias(row_desc({layer.out_channels})),
          strides{layer.stride, layer.stride},
          before{layer.pad_before, layer.pad_before},
          after{layer.pad_after, layer.pad_after} {
      const memory::dims dims = input.dims();
      const auto outputs = [&](std::int64_t inputs) {
        return (inputs + layer.pad_before + layer.pad_after - layer.kernel) / layer.stride + 1;
      };
      output = image_desc({dims[0], layer.out_channels, outputs(dims[2]), outputs(dims[3])});
    }
    memory::desc input, weight, bias, output;
    memory::dims strides, before, after;
  };

  dnnl::convolution_forward::primitive_desc make_forward(const OperatorContext& context, const Geometry& geometry,
                                                         bool relu) {
    const std::string name = context.name + " forward";
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return checked("choice of " + name, [&] {
        return dnnl::convolution_forward::primitive_desc(
            dnnl::convolution_forward::desc(
                context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
                dnnl::algorithm::convolution_direct, geometry.input, geometry.weight, geometry.bias, geometry.output,
                geometry.strides, geometry.before, geometry.after),
            attributes, context.device.engine());
      });
    };
    const auto description = describe(relu ? attributes_with_relu() : attributes());
    const memory weight = converted(context, name, description.weights_desc(), weight_to_forward_);
    forward_ = Operation::make<dnnl::convolution_forward>(context.device, name, description,
                                                          {{DNNL_ARG_SRC, context.input.value},
                                                           {DNNL_ARG_WEIGHTS, weight},
                                                           {DNNL_ARG_BIAS, bias_.memory()},
                                                           {DNNL_ARG_DST, output_.value}});
    return description;
  }

  void make_backward_weights(const OperatorContext& context, const Geometry& geometry,
                             const dnnl::convolution_forward::primitive_desc& hint) {
    const std::string name = context.name + " backward weights";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::convolution_backward_weights::primitive_desc(
          dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, geometry.input, geometry.weight,
                                                   geometry.bias, geometry.output, geometry.strides, geometry.before,
                                                   geometry.after),
          attributes(), context.device.engine(), hint);
    });
    memory gradient = weight_gradient_.memory();
    if (description.diff_weights_desc() != gradient.get_desc()) {
      gradient = context.device.allocate(description.diff_weights_desc());
      gradient_to_canonical_ =
          Operation::make_reorder(context.device, name + " reorder", gradient, weight_gradient_.memory());
    }
    backward_weights_ =
        Operation::make<dnnl::convolution_backward_weights>(context.device, name, description,
                                                            {{DNNL_ARG_SRC, context.input.value},
                                                             {DNNL_ARG_DIFF_DST, output_.gradient},
                                                             {DNNL_ARG_DIFF_WEIGHTS, gradient},
                                                             {DNNL_ARG_DIFF_BIAS, bias_gradient_.memory()}});
  }

  void make_backward_data(const OperatorContext& context, const Geometry& geometry,
                          const dnnl::convolution_forward::primitive_desc& hint) {
    const std::string name = context.name + " backward data";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::convolution_backward_data::primitive_desc(
          dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, geometry.input, geometry.weight,
                                                geometry.output, geometry.strides, geometry.before, geometry.after),
          attributes(), context.device.engine(), hint);
    });
    const memory weight = converted(context, name, description.weights_desc(), weight_to_backward_);
    backward_data_ = Operation::make<dnnl::convolution_backward_data>(context.device, name, description,
                                                                      {{DNNL_ARG_DIFF_DST, output_.gradient},
                                                                       {DNNL_ARG_WEIGHTS, weight},
                                                                       {DNNL_ARG_DIFF_SRC, context.input.gradient}});
  }

  // The weights in the layout asked for: the master itself where that is canonical.
  memory converted(const OperatorContext& context, const std::string& name, const memory::desc& desc,
                   Operation& reorder) const {
    if (desc == weight_.memory().get_desc()) return weight_.memory();
    memory result = context.device.allocate(desc);
    reorder = Operation::make_reorder(context.device, name + " reorder", weight_.memory(), result);
    return result;
  }

  SegmentRange segments_;
  SegmentView weight_, bias_, weight_gradient_, bias_gradient_;
  Operation weight_to_forward_, forward_;
  Operation mask_, backward_weights_, gradient_to_canonical_;
  Operation weight_to_backward_, backward_data_;
};

}  // namespace

std::unique_ptr<Operator> make_convolution(const OperatorContext& context, const Convolution& layer, bool relu,
                                           bool mask) {
  return std::make_unique<ConvolutionOperator>(context, layer, relu, mask);
}

}  // namespace tg::engine::cpu

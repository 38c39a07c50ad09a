#include "engine/cpu/operator.h"
#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

// Weights stay in the canonical layout: bringing LeNet's fc1 (500 x 2450) to oneDNN's own costs 0.3 ms per pass and
// core, which is more than its product gains at batches of 16 to 64 (0.1-0.3 ms).
class DenseOperator final : public Operator {
 public:
  DenseOperator(const OperatorContext& context, const Dense& layer, bool relu)
      : segments_{layer.weight, layer.bias + 1},
        weight_(context, layer.weight),
        bias_(context, layer.bias),
        weight_gradient_(context, layer.weight),
        bias_gradient_(context, layer.bias) {
    TG_CHECK(layer.bias == layer.weight + 1, layer.weight, layer.bias);
    output_ = make_activation(context, row_desc({context.input.value.get_desc().dims()[0], layer.out_features}));
    const auto forward = make_forward(context, relu);
    if (!context.training) return;
    if (relu) mask_ = make_relu_mask(context, output_);
    make_backward_weights(context, forward);
    if (context.input_wants) make_backward_data(context, forward);
  }

  SegmentRange segments() const override { return segments_; }

  void forward(const float* parameters) override {
    weight_.bind(parameters);
    bias_.bind(parameters);
    forward_.run();
  }

  void backward_parameters(float* gradients) override {
    weight_gradient_.bind(gradients);
    bias_gradient_.bind(gradients);
    mask_.run();
    backward_weights_.run();
  }

  void backward_data() override { backward_data_.run(); }

 private:
  dnnl::inner_product_forward::primitive_desc make_forward(const OperatorContext& context, bool relu) {
    const std::string name = context.name + " forward";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_forward::primitive_desc(
          dnnl::inner_product_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              context.input.value.get_desc(), weight_.memory().get_desc(), bias_.memory().get_desc(),
              output_.value.get_desc()),
          relu ? attributes_with_relu() : attributes(), context.device.engine());
    });
    forward_ = Operation::make<dnnl::inner_product_forward>(context.device, name, description,
                                                            {{DNNL_ARG_SRC, context.input.value},
                                                             {DNNL_ARG_WEIGHTS, weight_.memory()},
                                                             {DNNL_ARG_BIAS, bias_.memory()},
                                                             {DNNL_ARG_DST, output_.value}});
    return description;
  }

  void make_backward_weights(const OperatorContext& context, const dnnl::inner_product_forward::primitive_desc& hint) {
    const std::string name = context.name + " backward weights";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_backward_weights::primitive_desc(
          dnnl::inner_product_backward_weights::desc(context.input.value.get_desc(),
                                                     weight_gradient_.memory().get_desc(),
                                                     bias_gradient_.memory().get_desc(), output_.value.get_desc()),
          attributes(), context.device.engine(), hint);
    });
    backward_weights_ =
        Operation::make<dnnl::inner_product_backward_weights>(context.device, name, description,
                                                              {{DNNL_ARG_SRC, context.input.value},
                                                               {DNNL_ARG_DIFF_DST, output_.gradient},
                                                               {DNNL_ARG_DIFF_WEIGHTS, weight_gradient_.memory()},
                                                               {DNNL_ARG_DIFF_BIAS, bias_gradient_.memory()}});
  }

  void make_backward_data(const OperatorContext& context, const dnnl::inner_product_forward::primitive_desc& hint) {
    const std::string name = context.name + " backward data";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_backward_data::primitive_desc(
          dnnl::inner_product_backward_data::desc(context.input.value.get_desc(), weight_.memory().get_desc(),
                                                  output_.value.get_desc()),
          attributes(), context.device.engine(), hint);
    });
    backward_data_ = Operation::make<dnnl::inner_product_backward_data>(context.device, name, description,
                                                                        {{DNNL_ARG_DIFF_DST, output_.gradient},
                                                                         {DNNL_ARG_WEIGHTS, weight_.memory()},
                                                                         {DNNL_ARG_DIFF_SRC, context.input.gradient}});
  }

  SegmentRange segments_;
  SegmentView weight_, bias_, weight_gradient_, bias_gradient_;
  Operation forward_, mask_, backward_weights_, backward_data_;
};

}  // namespace

std::unique_ptr<Operator> make_dense(const OperatorContext& context, const Dense& layer, bool relu) {
  return std::make_unique<DenseOperator>(context, layer, relu);
}

}  // namespace tg::engine::cpu

#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

// Weights stay in the canonical layout: converting LeNet's fc1 (500 x 2450) to oneDNN's own costs 0.3 ms per pass and
// core, more than the product gains at batches of 16 to 64 (0.1-0.3 ms).
class DenseStage final : public Stage {
 public:
  DenseStage(const StageContext& context, const Dense& layer)
      : Stage(context),
        weight_(context, context.model.segments[layer.weight]),
        weight_gradient_(context, context.model.segments[layer.weight]),
        has_bias_(layer.bias.has_value()) {
    if (has_bias_) {
      bias_ = SegmentView(context, context.model.segments[*layer.bias]);
      bias_gradient_ = SegmentView(context, context.model.segments[*layer.bias]);
    }
    const Ports ports = ports_of(context, layer);
    const auto forward = make_forward(context, ports);
    if (!context.backward()) return;
    if (context.plan.relu) mask_ = make_relu_mask(context, context.output, context.output.gradient);
    make_backward_weights(context, ports, forward);
    if (context.wants(0)) make_backward_data(context, ports, forward);
  }

  void forward(const Pass& pass) override {
    weight_.bind(pass.parameters);
    if (has_bias_) bias_.bind(pass.parameters);
    forward_.run();
  }

  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    weight_gradient_.bind(gradients);
    if (has_bias_) bias_gradient_.bind(gradients);
    mask_.run();
    backward_weights_.run();
  }

  void backward_data(const Pass& /*pass*/) override { backward_data_.run(); }

 private:
  // Input and output as rows.
  struct Ports {
    Activation input, output;
    memory::desc bias;
    memory::desc from() const { return input.value.get_desc(); }
    memory::desc to() const { return output.value.get_desc(); }
  };

  Ports ports_of(const StageContext& context, const Dense& layer) const {
    const auto rows = [&](const memory& image, memory::dim features) {
      return image ? context.arena.view(image, row_desc({context.batch, features})) : memory();
    };
    const memory::dim features = context.inputs[0].value.get_desc().dims()[1];
    return {
        {context.inputs[0].shape, rows(context.inputs[0].value, features), rows(context.inputs[0].gradient, features)},
        {context.output.shape, rows(context.output.value, layer.out_features),
         rows(context.output.gradient, layer.out_features)},
        has_bias_ ? bias_.memory().get_desc() : memory::desc()};
  }

  dnnl::inner_product_forward::primitive_desc make_forward(const StageContext& context, const Ports& ports) {
    const std::string name = context.name() + " forward";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_forward::primitive_desc(
          dnnl::inner_product_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, ports.from(),
              weight_.memory().get_desc(), ports.bias, ports.to()),
          context.plan.relu ? attributes_with_relu() : attributes(), context.library.engine());
    });
    Arguments arguments{
        {DNNL_ARG_SRC, ports.input.value}, {DNNL_ARG_WEIGHTS, weight_.memory()}, {DNNL_ARG_DST, ports.output.value}};
    if (has_bias_) arguments.emplace(DNNL_ARG_BIAS, bias_.memory());
    forward_ = Operation::make<dnnl::inner_product_forward>(context.library, name, description, std::move(arguments));
    return description;
  }

  void make_backward_weights(const StageContext& context, const Ports& ports,
                             const dnnl::inner_product_forward::primitive_desc& hint) {
    const std::string name = context.name() + " backward weights";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_backward_weights::primitive_desc(
          dnnl::inner_product_backward_weights::desc(ports.from(), weight_gradient_.memory().get_desc(), ports.bias,
                                                     ports.to()),
          attributes(), context.library.engine(), hint);
    });
    Arguments arguments{{DNNL_ARG_SRC, ports.input.value},
                        {DNNL_ARG_DIFF_DST, ports.output.gradient},
                        {DNNL_ARG_DIFF_WEIGHTS, weight_gradient_.memory()}};
    if (has_bias_) arguments.emplace(DNNL_ARG_DIFF_BIAS, bias_gradient_.memory());
    backward_weights_ =
        Operation::make<dnnl::inner_product_backward_weights>(context.library, name, description, std::move(arguments));
  }

  void make_backward_data(const StageContext& context, const Ports& ports,
                          const dnnl::inner_product_forward::primitive_desc& hint) {
    const std::string name = context.name() + " backward data";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::inner_product_backward_data::primitive_desc(
          dnnl::inner_product_backward_data::desc(ports.from(), weight_.memory().get_desc(), ports.to()), attributes(),
          context.library.engine(), hint);
    });
    backward_data_ = Operation::make<dnnl::inner_product_backward_data>(context.library, name, description,
                                                                        {{DNNL_ARG_DIFF_DST, ports.output.gradient},
                                                                         {DNNL_ARG_WEIGHTS, weight_.memory()},
                                                                         {DNNL_ARG_DIFF_SRC, ports.input.gradient}});
  }

  SegmentView weight_, bias_, weight_gradient_, bias_gradient_;
  const bool has_bias_;
  Operation forward_, mask_, backward_weights_, backward_data_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Dense& layer) {
  return std::make_unique<DenseStage>(context, layer);
}

}  // namespace tg::engine::cpu

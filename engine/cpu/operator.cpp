#include "engine/cpu/operator.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;

class ReluOperator final : public Operator {
 public:
  explicit ReluOperator(const OperatorContext& context) {
    output_ = context.input;
    const auto description = checked("choice of relu", [&] {
      return dnnl::eltwise_forward::primitive_desc(
          dnnl::eltwise_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
              dnnl::algorithm::eltwise_relu, output_.value.get_desc(), 0.0F, 0.0F),
          attributes(), context.device.engine());
    });
    forward_ = Operation::make<dnnl::eltwise_forward>(context.device, context.name + " forward", description,
                                                      {{DNNL_ARG_SRC, output_.value}, {DNNL_ARG_DST, output_.value}});
    if (context.training && context.input_wants) mask_ = make_relu_mask(context, output_);
  }

  void forward(const float* /*parameters*/) override { forward_.run(); }
  void backward_data() override { mask_.run(); }

 private:
  Operation forward_, mask_;
};

class FlattenOperator final : public Operator {
 public:
  explicit FlattenOperator(const OperatorContext& context) {
    const memory::dims dims = context.input.value.get_desc().dims();
    const memory::desc image(dims, memory::data_type::f32, memory::format_tag::nchw);
    output_ = make_activation(context, row_desc({dims[0], dims[1] * dims[2] * dims[3]}));
    // The same bytes, seen as images.
    value_ = context.device.view(image);
    point(value_, output_.value.get_data_handle());
    forward_ = Operation::make_reorder(context.device, context.name + " forward", context.input.value, value_);
    if (!context.training || !context.input_wants) return;
    gradient_ = context.device.view(image);
    point(gradient_, output_.gradient.get_data_handle());
    backward_ = Operation::make_reorder(context.device, context.name + " backward", gradient_, context.input.gradient);
  }

  void forward(const float* /*parameters*/) override { forward_.run(); }
  void backward_data() override { backward_.run(); }

 private:
  memory value_, gradient_;
  Operation forward_, backward_;
};

}  // namespace

memory::desc image_desc(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::nhwc}; }

memory::desc row_desc(const memory::dims& dims) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a, memory::format_tag::ab, memory::format_tag::abc,
                                          memory::format_tag::abcd};
  return {dims, memory::data_type::f32, kTags[dims.size() - 1]};
}

Activation make_activation(const OperatorContext& context, const memory::desc& desc) {
  Activation activation;
  activation.value = context.device.allocate(desc);
  if (context.training) activation.gradient = context.device.allocate(desc);
  return activation;
}

Operation make_relu_mask(const OperatorContext& context, const Activation& activation) {
  const memory::desc desc = activation.value.get_desc();
  const auto description = checked("choice of relu backward", [&] {
    const dnnl::eltwise_forward::primitive_desc hint(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu_use_dst_for_bwd,
                                    desc, 0.0F, 0.0F),
        attributes(), context.device.engine());
    return dnnl::eltwise_backward::primitive_desc(
        dnnl::eltwise_backward::desc(dnnl::algorithm::eltwise_relu_use_dst_for_bwd, desc, desc, 0.0F, 0.0F),
        attributes(), context.device.engine(), hint);
  });
  return Operation::make<dnnl::eltwise_backward>(context.device, context.name + " relu backward", description,
                                                 {{DNNL_ARG_DST, activation.value},
                                                  {DNNL_ARG_DIFF_DST, activation.gradient},
                                                  {DNNL_ARG_DIFF_SRC, activation.gradient}});
}

SegmentView::SegmentView(const OperatorContext& context, std::size_t segment)
    : memory_(context.device.view(row_desc(context.segments[segment].shape))),
      offset_(context.segments[segment].offset) {}

std::unique_ptr<Operator> make_relu(const OperatorContext& context) { return std::make_unique<ReluOperator>(context); }

std::unique_ptr<Operator> make_flatten(const OperatorContext& context) {
  return std::make_unique<FlattenOperator>(context);
}

}  // namespace tg::engine::cpu

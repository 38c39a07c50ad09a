#include <stdexcept>

#include "engine/cpu/stages/stage.h"

namespace tg::engine::cpu {
namespace {

using dnnl::memory;
using dnnl::normalization_flags;

// A fused relu keeps its signs in oneDNN's workspace, one bit or byte a value, so the output need not be kept for it.
class BatchNormalizationStage final : public Stage {
 public:
  BatchNormalizationStage(const StageContext& context, const BatchNormalization& layer)
      : Stage(context), has_gamma_(layer.gamma.has_value()) {
    const SegmentTable &segments = context.model.segments, &statistics = context.model.statistics;
    if (has_gamma_) {
      gamma_ = SegmentView(context, segments[*layer.gamma]);
      gamma_gradient_ = SegmentView(context, segments[*layer.gamma]);
    }
    beta_ = SegmentView(context, segments[layer.beta]);
    beta_gradient_ = SegmentView(context, segments[layer.beta]);
    running_mean_ = SegmentView(context, statistics[layer.mean]);
    running_variance_ = SegmentView(context, statistics[layer.variance]);
    mean_offset_ = statistics[layer.mean].offset;
    variance_offset_ = statistics[layer.variance].offset;
    mean_ = running_mean_.memory();
    variance_ = running_variance_.memory();

    const memory::desc desc = context.output.value.get_desc();
    auto flags = normalization_flags::use_shift;
    if (has_gamma_) flags |= normalization_flags::use_scale;
    if (context.plan.relu) flags |= normalization_flags::fuse_norm_relu;
    if (context.training) {
      measure(context, desc.dims());
    } else {
      flags |= normalization_flags::use_global_stats;
    }
    const auto forward = make_forward(context, layer, desc, flags);
    if (context.backward()) make_backward(context, layer, desc, flags, forward);
  }

  void forward(const Pass& pass) override {
    if (has_gamma_) gamma_.bind(pass.parameters);
    beta_.bind(pass.parameters);
    if (pass.statistics != nullptr) {
      running_mean_.bind(pass.statistics);
      running_variance_.bind(pass.statistics);
    }
    forward_.run();
  }

  // One primitive computes the gradients of the segments and of the input.
  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    if (has_gamma_) gamma_gradient_.bind(gradients);
    beta_gradient_.bind(gradients);
    backward_.run();
  }
  void backward_data(const Pass& /*pass*/) override {}

  void read_statistics(float* measured) const override {
    const float *const mean = floats_of(mean_), *const variance = floats_of(variance_);
    for (std::size_t c = 0; c < float_count(mean_); ++c) {
      measured[mean_offset_ + c] = mean[c];
      measured[variance_offset_ + c] = variance[c] * of_sample_;
    }
  }

 private:
  // For training: mean and variance are the batch's own.
  void measure(const StageContext& context, const memory::dims& dims) {
    const auto count = static_cast<double>(dims[0] * dims[2] * dims[3]);
    if (count < 2)
      throw std::invalid_argument(context.name() +
                                  " normalizes over one value: one sample at a time, one pixel large; make the batch "
                                  "(or micro-batch) or the images larger");
    of_sample_ = static_cast<float>(count / (count - 1));
    mean_ = context.library.allocate(running_mean_.memory().get_desc());
    variance_ = context.library.allocate(running_variance_.memory().get_desc());
  }

  dnnl::batch_normalization_forward::primitive_desc make_forward(const StageContext& context,
                                                                 const BatchNormalization& layer,
                                                                 const memory::desc& desc, normalization_flags flags) {
    const std::string name = context.name() + " forward";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::batch_normalization_forward::primitive_desc(
          dnnl::batch_normalization_forward::desc(
              context.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, desc,
              layer.epsilon, flags),
          attributes(), context.library.engine());
    });
    Arguments arguments{{DNNL_ARG_SRC, context.inputs[0].value},
                        {DNNL_ARG_DST, context.output.value},
                        {DNNL_ARG_MEAN, mean_},
                        {DNNL_ARG_VARIANCE, variance_},
                        {DNNL_ARG_SHIFT, beta_.memory()}};
    if (has_gamma_) arguments.emplace(DNNL_ARG_SCALE, gamma_.memory());
    if (context.training && context.plan.relu) {
      workspace_ = context.kept(description.workspace_desc());
      arguments.emplace(DNNL_ARG_WORKSPACE, workspace_);
    }
    forward_ =
        Operation::make<dnnl::batch_normalization_forward>(context.library, name, description, std::move(arguments));
    return description;
  }

  void make_backward(const StageContext& context, const BatchNormalization& layer, const memory::desc& desc,
                     normalization_flags flags, const dnnl::batch_normalization_forward::primitive_desc& hint) {
    const std::string name = context.name() + " backward";
    const auto description = checked("choice of " + name, [&] {
      return dnnl::batch_normalization_backward::primitive_desc(
          dnnl::batch_normalization_backward::desc(dnnl::prop_kind::backward, desc, desc, layer.epsilon, flags),
          attributes(), context.library.engine(), hint);
    });
    Arguments arguments{
        {DNNL_ARG_SRC, context.inputs[0].value},
        {DNNL_ARG_MEAN, mean_},
        {DNNL_ARG_VARIANCE, variance_},
        {DNNL_ARG_DIFF_DST, context.output.gradient},
        {DNNL_ARG_DIFF_SRC, context.wants(0) ? context.inputs[0].gradient : context.backward_scratch(desc)},
        {DNNL_ARG_SHIFT, beta_.memory()},  // required, though no derivative depends on it
        {DNNL_ARG_DIFF_SHIFT, beta_gradient_.memory()}};
    if (has_gamma_) {
      arguments.emplace(DNNL_ARG_SCALE, gamma_.memory());
      arguments.emplace(DNNL_ARG_DIFF_SCALE, gamma_gradient_.memory());
    }
    if (context.plan.relu) arguments.emplace(DNNL_ARG_WORKSPACE, workspace_);
    backward_ =
        Operation::make<dnnl::batch_normalization_backward>(context.library, name, description, std::move(arguments));
  }

  const bool has_gamma_;
  SegmentView gamma_, beta_, gamma_gradient_, beta_gradient_, running_mean_, running_variance_;
  std::size_t mean_offset_ = 0, variance_offset_ = 0;
  float of_sample_ = 1;  // n / (n - 1)
  memory mean_, variance_, workspace_;
  Operation forward_, backward_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const BatchNormalization& layer) {
  return std::make_unique<BatchNormalizationStage>(context, layer);
}

}  // namespace tg::engine::cpu

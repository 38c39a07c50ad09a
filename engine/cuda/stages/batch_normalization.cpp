#include <stdexcept>

#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;

TensorDescriptor make_channels(const TensorDescriptor& image) {
  cudnnTensorDescriptor_t channels = nullptr;
  TG_CUDNN(cudnnCreateTensorDescriptor(&channels));
  TensorDescriptor owned(channels);
  TG_CUDNN(cudnnDeriveBNTensorDescriptor(channels, image.get(), CUDNN_BATCHNORM_SPATIAL));
  return owned;
}

// Uses CUDNN_BATCHNORM_SPATIAL: the persistent variant may overflow, and adds in another order. A fused relu keeps its
// signs beside the values, one byte each, so the output need not be kept for it.
class BatchNormalizationStage final : public Stage {
 public:
  BatchNormalizationStage(const StageContext& context, const BatchNormalization& layer)
      : Stage(context),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        count_(context.floats(output_.shape)),
        training_(context.training),
        relu_(context.plan.relu),
        epsilon_(static_cast<double>(layer.epsilon)),
        images_(make_tensor(context.batch, output_.shape)),
        channels_(make_channels(images_)),
        beta_offset_(context.model.segments[layer.beta].offset),
        mean_offset_(context.model.statistics[layer.mean].offset),
        variance_offset_(context.model.statistics[layer.variance].offset) {
    if (epsilon_ < CUDNN_BN_MIN_EPSILON)
      throw std::runtime_error("its epsilon is " + std::to_string(epsilon_) + "; cuDNN takes " +
                               std::to_string(CUDNN_BN_MIN_EPSILON) + " or more");
    const std::size_t channel_bytes = static_cast<std::size_t>(output_.shape.channels) * sizeof(float);
    if (layer.gamma)
      gamma_offset_ = context.model.segments[*layer.gamma].offset;
    else
      ones_ = make_ones(static_cast<std::size_t>(output_.shape.channels));
    if (!training_) {
      if (shares_memory(context)) copy_ = context.forward_scratch(bytes());
      return;
    }
    if (count_ / static_cast<std::size_t>(output_.shape.channels) < 2)
      throw std::invalid_argument(context.name() +
                                  " normalizes over one value: one sample at a time, one pixel large; make the batch "
                                  "(or micro-batch) or the images larger");
    saved_mean_ = context.kept(channel_bytes);
    saved_inverse_ = context.kept(channel_bytes);
    if (relu_) signs_ = context.kept(count_);
    input_gradient_ = context.wants(0) ? input_.gradient : context.backward_scratch(bytes());
    if (!layer.gamma) gamma_gradient_ = context.backward_scratch(channel_bytes);
  }

  void forward(const Pass& pass) override {
    if (training_)
      train(pass);
    else
      evaluate(pass);
  }

  // One call computes the gradients of the segments and of the input.
  void backward_parameters(const Pass& pass, float* gradients) override {
    float* const dy = output_.gradient.floats();
    if (relu_) relu_gradient_signs(count_, signs_.as<std::uint8_t>(), dy, dy, library_.compute());
    TG_CUDNN(cudnnBatchNormalizationBackward(
        library_.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, &kOne, &kZero, images_.get(), input_.value.floats(),
        images_.get(), dy, images_.get(), input_gradient_.floats(), channels_.get(), gamma(pass),
        gamma_offset_ ? gradients + *gamma_offset_ : gamma_gradient_.floats(), gradients + beta_offset_, epsilon_,
        saved_mean_.floats(), saved_inverse_.floats()));
  }
  void backward_data(const Pass& /*pass*/) override {}

 private:
  // With a factor of 1 the running values become the batch's own, the variance with divisor n - 1.
  void train(const Pass& pass) {
    float* const y = output_.value.floats();
    TG_CUDNN(cudnnBatchNormalizationForwardTraining(
        library_.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, images_.get(), input_.value.floats(), images_.get(),
        y, channels_.get(), gamma(pass), pass.parameters + beta_offset_, 1.0, pass.measured + mean_offset_,
        pass.measured + variance_offset_, epsilon_, saved_mean_.floats(), saved_inverse_.floats()));
    if (relu_) relu_signs(count_, y, y, signs_.as<std::uint8_t>(), library_.compute());
  }

  void evaluate(const Pass& pass) {
    const float* x = input_.value.floats();
    float* const y = output_.value.floats();
    if (copy_) {
      TG_CUDA(cudaMemcpyAsync(copy_.bytes(), x, bytes(), cudaMemcpyDeviceToDevice, library_.compute()));
      x = copy_.floats();
    }
    TG_CUDNN(cudnnBatchNormalizationForwardInference(library_.cudnn(), CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero,
                                                     images_.get(), x, images_.get(), y, channels_.get(), gamma(pass),
                                                     pass.parameters + beta_offset_, pass.statistics + mean_offset_,
                                                     pass.statistics + variance_offset_, epsilon_));
    if (relu_) relu(count_, y, y, library_.compute());
  }

  // The plan may put an evaluation's output in its input's memory; cuDNN does not promise to support that.
  static bool shares_memory(const StageContext& context) {
    return context.inputs[0].value.buffer() == context.output.value.buffer();
  }

  std::size_t bytes() const { return count_ * sizeof(float); }
  const float* gamma(const Pass& pass) const { return gamma_offset_ ? pass.parameters + *gamma_offset_ : ones_.data(); }

  kernels::cuda::DeviceArray<float> make_ones(std::size_t count) const {
    kernels::cuda::DeviceArray<float> ones(count);
    const std::vector<float> values(count, 1.0F);
    TG_CUDA(
        cudaMemcpyAsync(ones.data(), values.data(), count * sizeof(float), cudaMemcpyHostToDevice, library_.compute()));
    library_.wait();
    return ones;
  }

  Library& library_;
  const Activation input_, output_;
  const std::size_t count_;
  const bool training_, relu_;
  const double epsilon_;
  const TensorDescriptor images_, channels_;
  std::optional<std::size_t> gamma_offset_;
  const std::size_t beta_offset_, mean_offset_, variance_offset_;
  kernels::cuda::DeviceArray<float> ones_;  // used if there is no gamma
  View saved_mean_, saved_inverse_, signs_, input_gradient_, gamma_gradient_, copy_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const BatchNormalization& layer) {
  return std::make_unique<BatchNormalizationStage>(context, layer);
}

}  // namespace tg::engine::cuda

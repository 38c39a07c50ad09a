#include <algorithm>
#include <array>
#include <stdexcept>

#include "engine/cuda/operators/images.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;

// What cuDNN's three calls of a convolution have in common, in one form each: their algorithms, by number.
struct Forward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Found = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr int kCount = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  static constexpr Algorithm kWinogradNonfused = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
};
struct BackwardData {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Found = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr int kCount = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  static constexpr Algorithm kWinogradNonfused = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED;
};
struct BackwardWeights {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Found = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr int kCount = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  static constexpr Algorithm kWinogradNonfused = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
};

// Input, weight and output as cuDNN sees them. The workspace is the library's.
class Calls {
 public:
  Calls(Library& library, int batch, const ImageShape& input, const ImageShape& output, const Convolution& layer,
        const Padding& padding)
      : library_(library), kernel_(layer.window.kernel), x_(make_tensor(batch, input)), y_(make_tensor(batch, output)) {
    cudnnFilterDescriptor_t weight = nullptr;
    TG_CUDNN(cudnnCreateFilterDescriptor(&weight));
    weight_.reset(weight);
    TG_CUDNN(cudnnSetFilter4dDescriptor(weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, layer.out_channels,
                                        input.channels / layer.groups, kernel_, kernel_));
    cudnnConvolutionDescriptor_t convolution = nullptr;
    TG_CUDNN(cudnnCreateConvolutionDescriptor(&convolution));
    convolution_.reset(convolution);
    const Window& window = layer.window;
    TG_CUDNN(cudnnSetConvolution2dDescriptor(convolution, padding.top, padding.left, window.stride, window.stride,
                                             window.dilation, window.dilation, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT));
    TG_CUDNN(cudnnSetConvolutionGroupCount(convolution, layer.groups));
    TG_CUDNN(cudnnSetConvolutionMathType(convolution, library.convolution_math()));
  }

  void find(int asked, int& count, Forward::Found* found) const {
    TG_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(library_.cudnn(), x_.get(), weight_.get(), convolution_.get(),
                                                    y_.get(), asked, &count, found));
  }
  void find(int asked, int& count, BackwardData::Found* found) const {
    TG_CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(library_.cudnn(), weight_.get(), y_.get(), convolution_.get(),
                                                         x_.get(), asked, &count, found));
  }
  void find(int asked, int& count, BackwardWeights::Found* found) const {
    TG_CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(library_.cudnn(), x_.get(), y_.get(), convolution_.get(),
                                                           weight_.get(), asked, &count, found));
  }

  // False where the algorithm cannot do this convolution.
  bool workspace(Forward::Algorithm algorithm, std::size_t& bytes) const {
    return cudnnGetConvolutionForwardWorkspaceSize(library_.cudnn(), x_.get(), weight_.get(), convolution_.get(),
                                                   y_.get(), algorithm, &bytes) == CUDNN_STATUS_SUCCESS;
  }
  bool workspace(BackwardData::Algorithm algorithm, std::size_t& bytes) const {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(library_.cudnn(), weight_.get(), y_.get(), convolution_.get(),
                                                        x_.get(), algorithm, &bytes) == CUDNN_STATUS_SUCCESS;
  }
  bool workspace(BackwardWeights::Algorithm algorithm, std::size_t& bytes) const {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(library_.cudnn(), x_.get(), y_.get(), convolution_.get(),
                                                          weight_.get(), algorithm, &bytes) == CUDNN_STATUS_SUCCESS;
  }

  void run(Forward::Algorithm algorithm, const float* x, const float* weight, float* y) const {
    TG_CUDNN(cudnnConvolutionForward(library_.cudnn(), &kOne, x_.get(), x, weight_.get(), weight, convolution_.get(),
                                     algorithm, library_.workspace(), library_.workspace_bytes(), &kZero, y_.get(), y));
  }
  void run(BackwardData::Algorithm algorithm, const float* weight, const float* dy, float* dx) const {
    TG_CUDNN(cudnnConvolutionBackwardData(library_.cudnn(), &kOne, weight_.get(), weight, y_.get(), dy,
                                          convolution_.get(), algorithm, library_.workspace(),
                                          library_.workspace_bytes(), &kZero, x_.get(), dx));
  }
  void run(BackwardWeights::Algorithm algorithm, const float* x, const float* dy, float* gradient) const {
    TG_CUDNN(cudnnConvolutionBackwardFilter(library_.cudnn(), &kOne, x_.get(), x, y_.get(), dy, convolution_.get(),
                                            algorithm, library_.workspace(), library_.workspace_bytes(), &kZero,
                                            weight_.get(), gradient));
  }

  // The deterministic algorithms, each once. run(algorithm): the call.
  template <class Call, class Run>
  typename Call::Algorithm choose(Trials& trials, const std::string& name, const Run& run) const {
    std::array<typename Call::Found, 2 * Call::kCount> found{};  // some are listed once for each kind of arithmetic
    int count = 0;
    find(static_cast<int>(found.size()), count, found.data());
    std::vector<typename Call::Algorithm> algorithms;
    std::vector<Candidate> candidates;
    for (int i = 0; i < count; ++i) {
      const typename Call::Algorithm algorithm = found[static_cast<std::size_t>(i)].algo;
      if (found[static_cast<std::size_t>(i)].status != CUDNN_STATUS_SUCCESS ||
          found[static_cast<std::size_t>(i)].determinism != CUDNN_DETERMINISTIC || !accurate<Call>(algorithm) ||
          std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end())
        continue;
      std::size_t bytes = 0;
      if (!workspace(algorithm, bytes)) continue;
      algorithms.push_back(algorithm);
      candidates.push_back(
          {"algorithm " + std::to_string(static_cast<int>(algorithm)), bytes, [&run, algorithm] { run(algorithm); }});
    }
    return algorithms[trials.choose(name, candidates)];
  }

 private:
  // Winograd's transformed products lose digits as the kernel grows: a relative error of 1e-3 at 5x5, in float32.
  template <class Call>
  bool accurate(typename Call::Algorithm algorithm) const {
    return library_.math() != Math::kFp32 || kernel_ <= 3 || algorithm != Call::kWinogradNonfused;
  }

  const Library& library_;
  const int kernel_;
  TensorDescriptor x_, y_;
  FilterDescriptor weight_;
  ConvolutionDescriptor convolution_;
};

// cuDNN's padding is the same at both ends of a side. Where the layer's is not, its input is copied into zeros, and
// cuDNN pads nothing.
class ConvolutionStage final : public Stage {
 public:
  ConvolutionStage(const StageContext& context, const Convolution& layer)
      : Stage(context),
        name_(context.name()),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        output_planes_(context.planes(output_.shape)),
        training_(context.training),
        wanted_(context.wants(0)),
        relu_(context.plan.relu),
        masks_(relu_ && !context.plan.mask_left),
        padding_(layer.window.padding),
        pads_(padding_.top != padding_.bottom || padding_.left != padding_.right),
        input_planes_(context.batch * input_.shape.channels),
        weight_offset_(context.model.segments[layer.weight].offset),
        calls_(library_, context.batch, padded_shape(), output_.shape, layer, pads_ ? Padding{} : padding_) {
    if (layer.bias) bias_offset_ = context.model.segments[*layer.bias].offset;
    if (pads_) {
      const std::size_t bytes = context.floats(padded_shape()) * sizeof(float);
      padded_ = context.forward_scratch(bytes);
      if (training_) padded_again_ = context.backward_scratch(bytes);
    }
    if (training_ && layer.bias)
      bias_scratch_ = context.backward_scratch(bias_scratch_floats(output_planes_) * sizeof(float));
  }

  void choose(Trials& trials) override {
    const float* const x = pads_ ? padded_.floats() : input_.value.floats();
    forward_ = calls_.choose<Forward>(
        trials, name_ + (training_ ? " forward" : " evaluation"),
        [&](Forward::Algorithm algorithm) { calls_.run(algorithm, x, trials.weight(), output_.value.floats()); });
    if (!training_) return;
    const float* const dy = output_.gradient.floats();
    const float* const again = pads_ ? padded_again_.floats() : input_.value.floats();
    backward_weights_ = calls_.choose<BackwardWeights>(
        trials, name_ + " backward weights",
        [&](BackwardWeights::Algorithm algorithm) { calls_.run(algorithm, again, dy, trials.weight()); });
    if (!wanted_) return;
    float* const dx = pads_ ? padded_again_.floats() : input_.gradient.floats();
    backward_data_ = calls_.choose<BackwardData>(
        trials, name_ + " backward data",
        [&](BackwardData::Algorithm algorithm) { calls_.run(algorithm, trials.weight(), dy, dx); });
  }

  void forward(const Pass& pass) override {
    float* const y = output_.value.floats();
    calls_.run(forward_, padded(padded_), pass.parameters + weight_offset_, y);
    if (relu_ || bias_offset_)
      add_bias(output_planes_, y, bias_offset_ ? pass.parameters + *bias_offset_ : nullptr, relu_, y,
               library_.compute());
  }

  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    float* const dy = output_.gradient.floats();
    if (masks_) relu_gradient(output_planes_.elements(), output_.value.floats(), dy, dy, library_.compute());
    if (bias_offset_)
      bias_gradient(output_planes_, dy, bias_scratch_.floats(), gradients + *bias_offset_, library_.compute());
    calls_.run(backward_weights_, padded(padded_again_), dy, gradients + weight_offset_);
  }

  void backward_data(const Pass& pass) override {
    if (!wanted_) return;
    float* const dx = pads_ ? padded_again_.floats() : input_.gradient.floats();
    calls_.run(backward_data_, pass.parameters + weight_offset_, output_.gradient.floats(), dx);
    if (pads_) unpad(input_planes_, input_sides(), padding_, dx, input_.gradient.floats(), library_.compute());
  }

 private:
  Sides input_sides() const { return {input_.shape.height, input_.shape.width}; }
  ImageShape padded_shape() const {
    if (!pads_) return input_.shape;
    return {input_.shape.channels, input_.shape.height + padding_.top + padding_.bottom,
            input_.shape.width + padding_.left + padding_.right};
  }
  // What cuDNN reads as its input.
  const float* padded(const View& scratch) const {
    if (!pads_) return input_.value.floats();
    pad(input_planes_, input_sides(), padding_, input_.value.floats(), scratch.floats(), library_.compute());
    return scratch.floats();
  }

  const std::string name_;
  Library& library_;
  const Activation input_, output_;
  const Planes output_planes_;
  const bool training_, wanted_, relu_, masks_;
  const Padding padding_;
  const bool pads_;
  const int input_planes_;
  const std::size_t weight_offset_;
  std::optional<std::size_t> bias_offset_;
  const Calls calls_;
  View padded_, padded_again_, bias_scratch_;
  Forward::Algorithm forward_{};
  BackwardData::Algorithm backward_data_{};
  BackwardWeights::Algorithm backward_weights_{};
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Convolution& layer) {
  return std::make_unique<ConvolutionStage>(context, layer);
}

}  // namespace tg::engine::cuda

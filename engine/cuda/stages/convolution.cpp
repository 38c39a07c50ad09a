#include <algorithm>
#include <array>
#include <stdexcept>

#include "engine/cuda/operators/images.h"
#include "engine/cuda/operators/layout.h"
#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

constexpr float kOne = 1, kZero = 0;

// cuDNN's three calls of a convolution, in one common form: their algorithms, by number.
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

// How cuDNN takes a convolution's operands. Operands that are not NCHW in float32 are converted in the workspace.
struct Form {
  const char* name;  // precedes the algorithm's name
  cudnnTensorFormat_t format;
  cudnnDataType_t type;
  cudnnMathType_t math;
};

// The kernels that round their factors are made for NHWC; whether they gain more than the conversion costs is timed
// together with it. Those of strict float32 are up to 17 times slower in NHWC.
std::vector<Form> forms_of(const Library& library) {
  std::vector<Form> forms = {{"", CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, library.convolution_math()}};
  if (library.math() != Math::kFp32)
    forms.push_back({"nhwc tf32 ", CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH});
  if (library.math() == Math::kBf16)
    forms.push_back({"nhwc bf16 ", CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH});
  return forms;
}

struct Problem {
  int batch;
  ImageShape input, output;
  const Convolution& layer;
  Padding padding;  // the same at both ends of a side
};

// Input, weight and output as cuDNN sees them in one form. The workspace is the library's: first the operands in that
// form, then what the algorithm needs.
class Calls {
 public:
  Calls(const Library& library, const Form& form, const Problem& of)
      : library_(library),
        form_(form),
        kernel_(of.layer.window.kernel),
        x_place_(place(of.batch, of.input.channels, of.input.height * of.input.width)),
        y_place_(place(of.batch, of.output.channels, of.output.height * of.output.width)),
        weight_place_(place(of.layer.out_channels, of.input.channels / of.layer.groups, kernel_ * kernel_)),
        x_(make_tensor(of.batch, of.input)),
        y_(make_tensor(of.batch, of.output)) {
    TG_CUDNN(cudnnSetTensor4dDescriptor(x_.get(), form.format, form.type, of.batch, of.input.channels, of.input.height,
                                        of.input.width));
    TG_CUDNN(cudnnSetTensor4dDescriptor(y_.get(), form.format, form.type, of.batch, of.output.channels,
                                        of.output.height, of.output.width));
    cudnnFilterDescriptor_t weight = nullptr;
    TG_CUDNN(cudnnCreateFilterDescriptor(&weight));
    weight_.reset(weight);
    TG_CUDNN(cudnnSetFilter4dDescriptor(weight, form.type, form.format, of.layer.out_channels,
                                        of.input.channels / of.layer.groups, kernel_, kernel_));
    cudnnConvolutionDescriptor_t convolution = nullptr;
    TG_CUDNN(cudnnCreateConvolutionDescriptor(&convolution));
    convolution_.reset(convolution);
    const Window& window = of.layer.window;
    TG_CUDNN(cudnnSetConvolution2dDescriptor(convolution, of.padding.top, of.padding.left, window.stride, window.stride,
                                             window.dilation, window.dilation, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT));
    TG_CUDNN(cudnnSetConvolutionGroupCount(convolution, of.layer.groups));
    TG_CUDNN(cudnnSetConvolutionMathType(convolution, form.math));
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

  // False if the algorithm cannot do this convolution.
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
    const void *const own_x = taken(x_place_, x), *const own_weight = taken(weight_place_, weight);
    TG_CUDNN(cudnnConvolutionForward(library_.cudnn(), &kOne, x_.get(), own_x, weight_.get(), own_weight,
                                     convolution_.get(), algorithm, scratch(), scratch_bytes(), &kZero, y_.get(),
                                     room(y_place_, y)));
    give(y_place_, y);
  }
  void run(BackwardData::Algorithm algorithm, const float* weight, const float* dy, float* dx) const {
    const void *const own_weight = taken(weight_place_, weight), *const own_dy = taken(y_place_, dy);
    TG_CUDNN(cudnnConvolutionBackwardData(library_.cudnn(), &kOne, weight_.get(), own_weight, y_.get(), own_dy,
                                          convolution_.get(), algorithm, scratch(), scratch_bytes(), &kZero, x_.get(),
                                          room(x_place_, dx)));
    give(x_place_, dx);
  }
  void run(BackwardWeights::Algorithm algorithm, const float* x, const float* dy, float* gradient) const {
    const void *const own_x = taken(x_place_, x), *const own_dy = taken(y_place_, dy);
    TG_CUDNN(cudnnConvolutionBackwardFilter(library_.cudnn(), &kOne, x_.get(), own_x, y_.get(), own_dy,
                                            convolution_.get(), algorithm, scratch(), scratch_bytes(), &kZero,
                                            weight_.get(), room(weight_place_, gradient)));
    give(weight_place_, gradient);
  }

  // Calls use(algorithm, name, workspace) for each deterministic algorithm.
  template <class Call, class Use>
  void each(const Use& use) const {
    std::array<typename Call::Found, 2 * Call::kCount> found{};  // some are listed once for each kind of arithmetic
    int count = 0;
    try {
      find(static_cast<int>(found.size()), count, found.data());
    } catch (const std::runtime_error&) {
      if (is_own()) throw;
      return;  // a form that this convolution does not have
    }
    const auto end = found.begin() + count;
    for (auto one = found.begin(); one != end; ++one) {
      // The descriptor's kind of arithmetic may be listed under another's name, if both are the same on a device: so
      // an algorithm must be deterministic with all kinds that it is listed with.
      const auto same = [one](const auto& other) { return other.algo == one->algo; };
      const auto differs = [](const auto& other) {
        return other.status == CUDNN_STATUS_SUCCESS && other.determinism != CUDNN_DETERMINISTIC;
      };
      if (one->status != CUDNN_STATUS_SUCCESS || !accurate<Call>(one->algo) ||
          std::any_of(found.begin(), end, [&](const auto& other) { return same(other) && differs(other); }) ||
          std::any_of(found.begin(), one,
                      [&](const auto& other) { return same(other) && other.status == CUDNN_STATUS_SUCCESS; }))
        continue;
      std::size_t bytes = 0;
      if (workspace(one->algo, bytes))
        use(one->algo, form_.name + ("algorithm " + std::to_string(static_cast<int>(one->algo))), operands_ + bytes);
    }
  }

 private:
  // An operand's matrices of channels x pixels, and where they lie in the workspace.
  struct Place {
    Matrices matrices;
    std::size_t offset;
  };
  Place place(int count, int channels, int pixels) {
    const Matrices matrices{static_cast<std::size_t>(count), static_cast<std::size_t>(channels),
                            static_cast<std::size_t>(pixels)};
    const std::size_t offset = operands_;
    if (!is_own()) {
      const std::size_t value = form_.type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(Bf16);
      const std::size_t bytes = matrices.count * matrices.rows * matrices.columns * value;
      operands_ += (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
    }
    return {matrices, offset};
  }

  // Whether this is the form of everything else.
  bool is_own() const { return form_.format == CUDNN_TENSOR_NCHW; }
  template <class T>
  T* at(const Place& place) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(library_.workspace()) + place.offset);
  }
  const void* taken(const Place& place, const float* from) const {
    if (is_own()) return from;
    if (form_.type == CUDNN_DATA_FLOAT) {
      transpose(place.matrices, from, at<float>(place), library_.compute());
    } else {
      transpose(place.matrices, from, at<Bf16>(place), library_.compute());
    }
    return at<void>(place);
  }
  void* room(const Place& place, float* to) const { return is_own() ? to : at<void>(place); }
  void give(const Place& place, float* to) const {
    if (is_own()) return;
    const Matrices back{place.matrices.count, place.matrices.columns, place.matrices.rows};
    if (form_.type == CUDNN_DATA_FLOAT) {
      transpose(back, at<const float>(place), to, library_.compute());
    } else {
      transpose(back, at<const Bf16>(place), to, library_.compute());
    }
  }
  void* scratch() const { return static_cast<std::byte*>(library_.workspace()) + operands_; }
  std::size_t scratch_bytes() const { return library_.workspace_bytes() - operands_; }

  // Winograd's transformed products lose digits as the kernel grows: a relative error of 1e-3 at 5x5, in float32.
  template <class Call>
  bool accurate(typename Call::Algorithm algorithm) const {
    return library_.math() != Math::kFp32 || kernel_ <= 3 || algorithm != Call::kWinogradNonfused;
  }

  const Library& library_;
  const Form form_;
  const int kernel_;
  std::size_t operands_ = 0;  // bytes of all places
  const Place x_place_, y_place_, weight_place_;
  TensorDescriptor x_, y_;
  FilterDescriptor weight_;
  ConvolutionDescriptor convolution_;
};

std::vector<Calls> calls_of(const Library& library, const Problem& problem) {
  std::vector<Calls> calls;
  for (const Form& form : forms_of(library)) calls.emplace_back(library, form, problem);
  return calls;
}

// One of cuDNN's three calls as made in every step.
template <class Call>
class Chosen {
 public:
  template <class... Operands>
  void choose(const std::vector<Calls>& forms, Trials& trials, const std::string& name, Operands... operands) {
    std::vector<Chosen> all;
    std::vector<Candidate> candidates;
    for (const Calls& calls : forms)
      calls.each<Call>(
          [&](typename Call::Algorithm algorithm, const std::string& algorithm_name, std::size_t workspace) {
            Chosen one;
            one.calls_ = &calls;
            one.algorithm_ = algorithm;
            all.push_back(one);
            candidates.push_back({algorithm_name, workspace, [one, operands...] { one.run(operands...); }});
          });
    *this = all[trials.choose(name, candidates)];
  }
  template <class... Operands>
  void run(Operands... operands) const {
    calls_->run(algorithm_, operands...);
  }

 private:
  const Calls* calls_ = nullptr;
  typename Call::Algorithm algorithm_{};
};

// cuDNN's padding is the same at both ends of a side. If the layer's is not, its input is copied into zeros, and cuDNN
// pads nothing.
class ConvolutionStage final : public Stage {
 public:
  ConvolutionStage(const StageContext& context, const Convolution& layer)
      : Stage(context),
        name_(context.name()),
        library_(context.library),
        input_(context.inputs[0]),
        output_(context.output),
        output_planes_(planes_of(context, output_.shape)),
        training_(context.training),
        backward_(context.backward()),
        wanted_(context.wants(0)),
        relu_(context.plan.relu),
        masks_(relu_ && !context.plan.mask_left),
        padding_(layer.window.padding),
        pads_(padding_.top != padding_.bottom || padding_.left != padding_.right),
        input_planes_(context.batch * input_.shape.channels),
        weight_offset_(context.model.segments[layer.weight].offset),
        calls_(
            calls_of(library_, {context.batch, padded_shape(), output_.shape, layer, pads_ ? Padding{} : padding_})) {
    if (layer.bias) bias_offset_ = context.model.segments[*layer.bias].offset;
    if (pads_) {
      const std::size_t bytes = context.floats(padded_shape()) * sizeof(float);
      padded_ = context.forward_scratch(bytes);
      if (backward_) padded_again_ = context.backward_scratch(bytes);
    }
    if (backward_ && layer.bias)
      bias_scratch_ = context.backward_scratch(bias_scratch_floats(output_planes_) * sizeof(float));
  }

  void choose(Trials& trials) override {
    const float* const x = pads_ ? padded_.floats() : input_.value.floats();
    forward_.choose(calls_, trials, name_ + (training_ ? " forward" : " evaluation"), x, trials.weight(),
                    output_.value.floats());
    if (!backward_) return;
    const float* const dy = output_.gradient.floats();
    const float* const again = pads_ ? padded_again_.floats() : input_.value.floats();
    backward_weights_.choose(calls_, trials, name_ + " backward weights", again, dy, trials.weight());
    if (!wanted_) return;
    float* const dx = pads_ ? padded_again_.floats() : input_.gradient.floats();
    backward_data_.choose(calls_, trials, name_ + " backward data", trials.weight(), dy, dx);
  }

  void forward(const Pass& pass) override {
    float* const y = output_.value.floats();
    forward_.run(padded(padded_), pass.parameters + weight_offset_, y);
    if (relu_ || bias_offset_)
      add_bias(output_planes_, y, bias_offset_ ? pass.parameters + *bias_offset_ : nullptr, relu_, y,
               library_.compute());
  }

  void backward_parameters(const Pass& /*pass*/, float* gradients) override {
    float* const dy = output_.gradient.floats();
    if (masks_) relu_gradient(output_planes_.elements(), output_.value.floats(), dy, dy, library_.compute());
    if (bias_offset_)
      bias_gradient(output_planes_, dy, bias_scratch_.floats(), gradients + *bias_offset_, library_.compute());
    backward_weights_.run(padded(padded_again_), dy, gradients + weight_offset_);
  }

  void backward_data(const Pass& pass) override {
    if (!wanted_) return;
    float* const dx = pads_ ? padded_again_.floats() : input_.gradient.floats();
    backward_data_.run(pass.parameters + weight_offset_, output_.gradient.floats(), dx);
    if (pads_) unpad(input_planes_, input_sides(), padding_, dx, input_.gradient.floats(), library_.compute());
  }

 private:
  Sides input_sides() const { return {input_.shape.height, input_.shape.width}; }
  ImageShape padded_shape() const {
    if (!pads_) return input_.shape;
    return {input_.shape.channels, input_.shape.height + padding_.top + padding_.bottom,
            input_.shape.width + padding_.left + padding_.right};
  }
  // The input that cuDNN reads.
  const float* padded(const View& scratch) const {
    if (!pads_) return input_.value.floats();
    pad(input_planes_, input_sides(), padding_, input_.value.floats(), scratch.floats(), library_.compute());
    return scratch.floats();
  }

  const std::string name_;
  Library& library_;
  const Activation input_, output_;
  const Planes output_planes_;
  const bool training_, backward_, wanted_, relu_, masks_;
  const Padding padding_;
  const bool pads_;
  const int input_planes_;
  const std::size_t weight_offset_;
  std::optional<std::size_t> bias_offset_;
  const std::vector<Calls> calls_;  // one for each form
  View padded_, padded_again_, bias_scratch_;
  Chosen<Forward> forward_;
  Chosen<BackwardData> backward_data_;
  Chosen<BackwardWeights> backward_weights_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Convolution& layer) {
  return std::make_unique<ConvolutionStage>(context, layer);
}

}  // namespace tg::engine::cuda

#include "engine/cuda/cuda_engine.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/graph/shapes.h"
#include "engine/network/make_engine.h"
#include "engine/storage/sha256.h"
#include "kernels/base/check.h"
#include "kernels/base/joined.h"

namespace tg::engine::cuda {
namespace {

// The fast deterministic algorithms take up to 400 MiB; with 256 CifarNet of 1024 samples loses 40 %.
constexpr std::uint64_t kMaxWorkspace = 512u << 20;
constexpr std::uint64_t kShareOfFree = 4;  // takes a quarter of the free memory, and leaves the rest to others

constexpr std::size_t kDigestDigits = 12, kMaxWhy = 120;  // lengths of the choices' digest and of an error

std::uint64_t free_bytes() {
  std::size_t left = 0, total = 0;
  TG_CUDA(cudaMemGetInfo(&left, &total));
  return left;
}

// How many samples a batch may have: cuDNN describes no tensor of 2^31 elements, a convolution's padded input included.
int most_samples(const Model& model) {
  const std::vector<ImageShape> shapes = infer_shapes(model).value();
  std::size_t most = 1;
  for (const ImageShape& shape : shapes) most = std::max(most, shape.elements());
  for (const Operator& one : model.operators)
    if (const auto* layer = std::get_if<Convolution>(&one.attributes)) {
      ImageShape padded = shapes[one.inputs[0]];
      padded.height += layer->window.padding.top + layer->window.padding.bottom;
      padded.width += layer->window.padding.left + layer->window.padding.right;
      most = std::max(most, padded.elements());
    }
  return static_cast<int>(std::numeric_limits<std::int32_t>::max() / most);
}

// How many samples are evaluated at once: their activations stay below kEvaluationBytes and below a share of what the
// engine may take, or below training's, which has that memory anyway. The plan gives an estimate of how many samples
// fit, the network itself the exact number.
int evaluation_batch(Library& library, const Model& model, const EngineOptions& options, std::size_t training_bytes) {
  std::uint64_t left = free_bytes();
  if (options.most_activation_bytes != 0) left = std::min(left, options.most_activation_bytes);
  const std::uint64_t allowed =
      std::max<std::uint64_t>(training_bytes, std::min(kEvaluationBytes, left / kShareOfFree));
  std::uint64_t batch =
      std::clamp<std::uint64_t>(allowed / evaluation_bytes_of_sample(model, true), 1,
                                static_cast<unsigned>(std::min(options.evaluation_batch, most_samples(model))));
  while (batch > 1) {
    const std::uint64_t bytes = Network(library, model, {static_cast<int>(batch), false, options.seed}).bytes();
    if (bytes <= allowed) break;
    batch = std::clamp<std::uint64_t>(batch * allowed / bytes, 1, batch - 1);
  }
  return static_cast<int>(batch);
}

// Variables that make NVIDIA's libraries compute in another arithmetic than the one that is asked for: ", NAME=VALUE".
std::string overrides() {
  std::string text;
  for (const std::string name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"})
    if (const char* value = std::getenv(name.c_str())) text += ", " + name + "=" + std::string(value).substr(0, 8);
  return text;
}

// Whether a line of choices() is about evaluation.
bool is_evaluation(const std::string& choice) { return choice.find(std::string(kEvaluation) + ": ") != choice.npos; }

std::size_t count_of(int samples) { return static_cast<std::size_t>(samples); }

std::size_t image_bytes(const Model& model, int samples) {
  return count_of(samples) * model.input.elements() * sizeof(float);
}

}  // namespace

CudaEngine::CudaEngine(Model model, const DeviceChoice& device, const EngineOptions& options)
    : model_(std::move(model)),
      options_(options),
      device_(device),
      library_(device.number, device.math),
      training_(library_, model_, {options.batch, true, options.seed}),
      evaluation_(library_, model_,
                  {evaluation_batch(library_, model_, options, training_.bytes()), false, options.seed}),
      ranges_(training_.segments()),
      labels_(count_of(std::max(training_.batch(), evaluation_.batch()))),
      class_weights_(model_.class_weights.size()),
      step_(1),
      results_(training_.heads().size()),
      measured_(model_.statistics.padded_count()),
      running_(model_.statistics.padded_count()),
      complete_(ranges_.size()),
      prefetch_(library_, image_bytes(model_, options.batch) / sizeof(float)) {
  const std::size_t prefetched_at = std::max(training_.bytes(), evaluation_.bytes());
  const std::size_t bytes = prefetched_at + prefetch_.bytes();
  if (const std::uint64_t all = bytes + fixed_bytes();
      options_.most_activation_bytes != 0 && all > options_.most_activation_bytes)
    throw too_large(model_, options_, all, options_.most_activation_bytes, "left for them");
  // The trials' memory is released before the run's state is allocated, which is larger.
  const std::uint64_t wanted = bytes + Trials::bytes(trial_options(0));
  if (const std::uint64_t left = free_bytes(); wanted > left)
    throw too_large(model_, options_, wanted, left, "free on the device");
  memory_ = kernels::cuda::DeviceArray<std::byte>(bytes);
  training_.bind(memory_.data());
  evaluation_.bind(memory_.data());
  prefetch_.bind(memory_.data() + prefetched_at);
  std::fill_n(measured_.host(), measured_.size(), 0.0F);
  std::ranges::copy(model_.class_weights, class_weights_.host());
  class_weights_.copy_in(class_weights_.size(), library_.compute());
  choose_algorithms();
}

// The members belong to the device, and the calling thread's current device may be another.
CudaEngine::~CudaEngine() { cudaSetDevice(device_.number); }

std::size_t CudaEngine::fixed_bytes() const {
  return labels_.bytes() + class_weights_.bytes() + step_.bytes() + results_.bytes() + measured_.bytes() +
         running_.bytes();
}

Trials::Options CudaEngine::trial_options(std::uint64_t most_workspace) const {
  Trials::Options options{options_.choices, most_workspace};
  for (const Segment& segment : model_.segments.segments()) {
    std::size_t& most = segment.shape.size() > 1 ? options.weights : options.biases;
    most = std::max(most, segment.padded_count());
  }
  return options;
}

// Runs once the buffers have their places but no contents: the trials write to them.
void CudaEngine::choose_algorithms() {
  const std::uint64_t left = free_bytes(), tried = Trials::bytes(trial_options(0));
  std::uint64_t most_workspace = std::min(kMaxWorkspace, (left - std::min(left, tried)) / kShareOfFree);
  if (options_.most_activation_bytes != 0)
    most_workspace = std::min(most_workspace, options_.most_activation_bytes - memory_.size() - fixed_bytes());

  Trials trials(library_, trial_options(most_workspace));
  TG_CUDA(cudaMemsetAsync(memory_.data(), 0, memory_.size(), library_.compute()));
  training_.choose(trials);
  evaluation_.choose(trials);
  implementations_ = trials.finish();
  library_.wait();
  library_.take_workspace(trials.workspace());
}

void CudaEngine::load_labels(const std::int32_t* labels, int count) {
  for (int i = 0; i < count; ++i) {
    TG_CHECK(labels[i] >= 0 && labels[i] < model_.classes, labels[i], model_.classes);
    labels_.host()[i] = labels[i];
  }
  labels_.copy_in(count_of(count), library_.compute());
}

Pass CudaEngine::pass(const float* parameters, int counted) {
  const auto* const step = reinterpret_cast<const std::byte*>(step_.device());
  return {.parameters = parameters,
          .statistics = running_.device(),
          .measured = measured_.device(),
          .first_position = reinterpret_cast<const std::uint64_t*>(step + offsetof(Step, first_position)),
          .labels = labels_.device(),
          .class_weights = class_weights_.size() > 0 ? class_weights_.device() : nullptr,
          .counted = counted,
          .results = results_.device(),
          .factor = reinterpret_cast<const float*>(step + offsetof(Step, factor))};
}

template <class Work>
void CudaEngine::finish(const Work& work) {
  try {
    work();
  } catch (...) {
    try {
      library_.wait();
    } catch (const std::exception&) {  // the first failure is reported
    }
    throw;
  }
  library_.wait();
}

double CudaEngine::forward(const float* parameters, const Batch& batch, const SegmentGate& gate) {
  TG_CHECK(batch.count == options_.batch, batch.count, options_.batch);
  library_.claim();
  parameters_ = nullptr;
  const cudaStream_t stream = library_.compute();
  finish([&] {
    prefetch_.take(batch, training_.images());
    load_labels(batch.labels.data(), batch.count);
    *step_.host() = {batch.first_position, backwards_, 0};
    step_.copy_in(1, stream);
    // One launch reads all parameters, so all must be ready. Little is lost: the first layer's come last, since their
    // gradient is the last that backward completes.
    if (gate)
      for (const SegmentRange& range : ranges_) gate(range.first, range.last);
    forward_.run({parameters, nullptr}, stream, [&] {
      // A measured value adds 0 times the previous one, which must not be NaN.
      if (measured_.size() > 0) TG_CUDA(cudaMemsetAsync(measured_.device(), 0, measured_.bytes(), stream));
      training_.forward(pass(parameters, options_.batch));
      results_.copy_out(results_.size(), stream);
      measured_.copy_out(measured_.size(), stream);
    });
  });
  parameters_ = parameters;
  double sum = 0;
  for (std::size_t head = 0; head < results_.size(); ++head) {
    const CrossEntropy& loss = training_.heads()[head].loss;
    sum += loss.weight * results_.host()[head].trained;
  }
  return sum;
}

void CudaEngine::backward(float factor, float* gradients, const SegmentSink& sink) {
  TG_CHECK(parameters_ != nullptr, model_.name);
  library_.claim();
  const float* const parameters = std::exchange(parameters_, nullptr);  // the evaluation uses the activations' memory
  step_.host()->factor = factor;
  step_.host()->number = ++backwards_;
  const auto* const number = reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const std::byte*>(step_.device()) +
                                                                    offsetof(Step, number));
  const cudaStream_t stream = library_.compute();
  finish([&] {
    backward_.run({parameters, gradients}, stream, [&] {
      std::size_t done = 0;
      step_.copy_in(1, stream);
      training_.backward(pass(parameters, options_.batch), gradients, [&](std::size_t first, std::size_t last) {
        const SegmentRange& expected = ranges_[ranges_.size() - 1 - done];
        TG_CHECK(first == expected.first && last == expected.last, first, expected.first);
        complete_.queue(done, number, stream);
        ++done;
      });
      TG_CHECK(done == ranges_.size(), done, ranges_.size());
    });
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      complete_.wait(i, backwards_, stream);
      const SegmentRange& range = ranges_[ranges_.size() - 1 - i];
      sink(range.first, range.last);
    }
  });
}

void CudaEngine::prefetch(const Batch& next) {
  TG_CHECK(next.count == options_.batch, next.count, options_.batch);
  library_.claim();
  prefetch_.start(next);
}

void CudaEngine::forget_prefetch() {
  library_.claim();
  prefetch_.drop();
}

void CudaEngine::read_statistics(float* measured) const {
  for (const Segment& each : model_.statistics.segments())
    std::copy_n(measured_.host() + each.offset, each.element_count, measured + each.offset);
}

EvaluationCounts CudaEngine::evaluate(const float* parameters, const float* statistics, const Batch& batch,
                                      std::span<float> logits) {
  TG_CHECK(statistics != nullptr || model_.statistics.size() == 0, model_.name);
  library_.claim();
  parameters_ = nullptr;  // the activations of the last forward are overwritten
  const cudaStream_t stream = library_.compute();
  if (running_.size() > 0) std::copy_n(statistics, running_.size(), running_.host());
  running_.copy_in(running_.size(), stream);
  EvaluationCounts all;
  for (int done = 0; done < batch.count; done += evaluation_.batch()) {
    const int count = std::min(evaluation_.batch(), batch.count - done);
    const std::size_t bytes = image_bytes(model_, count), room = image_bytes(model_, evaluation_.batch());
    const float* const images = batch.images.data() + count_of(done) * model_.input.elements();
    auto* const to = reinterpret_cast<std::byte*>(evaluation_.images());
    finish([&] {
      TG_CUDA(cudaMemcpyAsync(to, images, bytes, cudaMemcpyHostToDevice, stream));
      // A short batch is padded with zeros.
      if (room > bytes) TG_CUDA(cudaMemsetAsync(to + bytes, 0, room - bytes, stream));
      load_labels(batch.labels.data() + done, count);
      evaluation_.forward(pass(parameters, count));
      results_.copy_out(1, stream);
      if (!logits.empty()) {
        const std::size_t classes = count_of(model_.classes);
        TG_CUDA(cudaMemcpyAsync(logits.data() + count_of(done) * classes, evaluation_.logits(),
                                count_of(count) * classes * sizeof(float), cudaMemcpyDeviceToHost, stream));
      }
    });
    const LossResult& result = *results_.host();
    all += {result.correct, count_of(count), result.plain, result.correct_5};
  }
  return all;
}

std::string CudaEngine::choices() const { return joined(implementations_, "\n"); }

// The digest covers the choices that a replay has to make again, not those for evaluation (trials.h).
std::string CudaEngine::build() const {
  std::string text;
  for (const std::string& each : implementations_)
    if (!is_evaluation(each)) text += each + "\n";
  Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  const std::string& why = forward_.not_captured().empty() ? backward_.not_captured() : forward_.not_captured();
  return library_versions() + ", " + device_.name + ", " + to_word(device_.math) + ", choices " +
         hash.hex().substr(0, kDigestDigits) + overrides() +
         (why.empty() ? "" : ", not captured: " + why.substr(0, kMaxWhy));
}

Result<std::unique_ptr<Engine>> make_cuda_engine(const Model& model, const DeviceChoice& device,
                                                 const EngineOptions& options) {
  if (options.batch < 1 || options.evaluation_batch < 1)
    return Error{ErrorKind::kInvalidJob, "the engine needs batches of at least one sample; got batch " +
                                             std::to_string(options.batch) + ", evaluation batch " +
                                             std::to_string(options.evaluation_batch)};
  return make_engine(model, options, [&] {
    if (const int most = most_samples(model); options.batch > most)
      throw TooLarge(activations_of(model, options) + " do not fit: cuDNN takes no tensor of 2^31 elements, so " +
                     std::to_string(most) + " samples at most");
    try {
      return std::make_unique<CudaEngine>(model, device, options);
    } catch (const kernels::cuda::OutOfMemory& e) {
      throw TooLarge(activations_of(model, options) + " do not fit: " + e.what());
    }
  });
}

}  // namespace tg::engine::cuda

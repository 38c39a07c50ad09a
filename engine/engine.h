// The engine's contract: learning on one machine. engine/cpu (oneDNN) and engine/cuda (cuDNN, cuBLAS) implement it;
// what they have in common is in engine/network. engine/replay computes nothing: it reports gradients that
// were made before the first step.
//
// An engine owns its activations, scratch memory and threads; parameters and gradients are the caller's flat arrays
// (segment.h), in the memory space that the engine computes in (kernels/memory_space.h): engine and tensor kernels of a
// run come from one module, so that both can use the same addresses. Samples and results are in host memory. forward,
// backward, evaluate and prefetch are called from one thread at a time; the sink is called on that thread. For fixed
// build, ISA, thread count and batch the gradient repeats bit for bit. Errors: construction may fail (Result); a
// library failure later is a std::runtime_error naming the failing call, which the run's compute thread turns into a
// FAILED run.
//
// Statistics of batch normalizations (Model::statistics) are the caller's, in host memory, beside the parameters and
// like them part of the replicated state. In training an engine never reads them: it normalizes with what it measures.
// In a step the caller
//   1. after forward (or later, but before the next one) takes what this member's samples measured: read_statistics;
//   2. computes the mean of all members', weighted by their shares b_r / B, added in rank order in float32;
//   3. moves the running ones towards it, once per step and with the same bits on every member: follow_statistics
//      (model.h), into the next half of its double buffer, so that an undone step leaves no trace;
//   4. evaluates with the running ones as they are: they are averages already and need no average over steps.
// Initial values come from initialize(model.statistics, ...): means 0, variances 1. Digest, checkpoint and artefact
// take them as further arrays of the state, under their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/segment.h"
#include "kernels/base/check.h"
#include "kernels/base/status.h"
#include "kernels/host_array.h"

namespace tg::engine {

// A batch of `count` samples: images are NCHW float32, count * channels * height * width of them, labels `count`. They
// are augmented on the host, by threads that run beside the step: so every engine gets the same bits, and the copy to a
// device is hidden as well.
struct Batch {
  int count = 0;
  std::uint64_t first_position = 0;  // the first sample's position in the sample stream; dropout's key
  kernels::HostArray images;         // from the engine's memory space (MemorySpace::allocate_host), or any other
  std::vector<std::int32_t> labels;
};

// Counts for the head that is used in evaluation.
struct EvaluationCounts {
  std::uint64_t correct = 0;  // samples whose label has the highest logit
  std::uint64_t total = 0;
  double loss_sum = 0;          // cross-entropy without smoothing, natural logarithm
  std::uint64_t correct_5 = 0;  // samples whose label has one of the five highest logits

  EvaluationCounts& operator+=(const EvaluationCounts& more) {
    correct += more.correct;
    total += more.total;
    loss_sum += more.loss_sum;
    correct_5 += more.correct_5;
    return *this;
  }
};

struct EngineOptions {
  int threads = 1;           // fixed for the engine's life
  int batch = 1;             // exact number of samples of a training batch
  int evaluation_batch = 1;  // most samples of an evaluation batch
  std::uint64_t seed = 0;    // the run's seed: dropout's key
  // The most that activation_bytes() may be; more is an error (kRefused) before any of it is allocated. 0 = no limit.
  std::uint64_t most_activation_bytes = 0;
  // For a device: the library's algorithms, as choices() of a similar engine returned them
  // (engine/cuda/trials/trials.h); any others are timed and chosen. The CPU chooses by rules alone.
  std::string choices = {};
  // Called after each part of the memory that takes long to prepare; what it throws passes through.
  std::function<void()> advanced = {};
};

class Engine {
 public:
  // Called as soon as the gradient of segments [first, last) is complete; last layer first.
  using SegmentSink = std::function<void(std::size_t first, std::size_t last)>;

  // Called before the parameters of segments [first, last) are read, first layer first; returns once they are ready.
  using SegmentGate = std::function<void(std::size_t first, std::size_t last)>;

  virtual ~Engine() = default;
  virtual const SegmentTable& segments() const = 0;
  virtual const SegmentTable& statistics() const = 0;

  // Returns the sum of the losses over the batch, of all heads as they are weighted, smoothed and weighted
  // by class. parameters:
  // segments().padded_count() floats, read only, and unchanged from the gate's return (or from the call, without one)
  // until backward returns. The batch must stay alive and unchanged until then too. An exception of the gate passes
  // through; then neither is used any more, and forward may be called again.
  virtual double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) = 0;
  double forward(const float* parameters, const Batch& batch) { return forward(parameters, batch, {}); }
  // gradients[...] = factor * d(sum of losses)/d(parameters) of the last forward. Called once per forward, with no
  // evaluation in between (it uses the same memory). Overwrites every real element of every segment, except for frozen
  // ones, whose elements mean nothing; padding is left as it is (0). The sink is told of frozen ones as well. An
  // exception of the sink passes through; then the gradient is unfinished, and forward may be called again.
  virtual void backward(float factor, float* gradients, const SegmentSink& sink) = 0;
  // Begins to copy the images of the next forward's batch, if they have to be copied, and returns while the copy goes
  // on beside the computation. Called between other calls or by the sink. That forward recognizes them by the Batch's
  // address and its first position; without a prefetch, or for another batch, forward copies the images itself. So
  // `next` must stay alive and unchanged from here until the backward of its forward has returned, or until a forward
  // or prefetch of another batch, or the engine's destructor. An evaluation in between does no harm. Images in ordinary
  // memory are left to forward: their copy would hold up the caller.
  virtual void prefetch(const Batch& /*next*/) {}
  // Forgets the batch that was prefetched, if any: its memory is no longer read when this returns.
  virtual void forget_prefetch() {}
  // What the last forward measured: for each batch normalization the mean, and the variance with divisor n - 1 (as in
  // PyTorch's running variance). statistics().padded_count() floats, padding left as it is.
  virtual void read_statistics(float* measured) const = 0;
  // Evaluates a batch of count <= evaluation_batch. statistics: the running ones. logits: where those of the head that
  // is used in evaluation go, a row for each sample; empty = nowhere.
  virtual EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch,
                                    std::span<float> logits) = 0;
  EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch) {
    return evaluate(parameters, statistics, batch, {});
  }
  // Evaluates a model without statistics.
  EvaluationCounts evaluate(const float* parameters, const Batch& batch) {
    TG_CHECK(statistics().size() == 0);
    return evaluate(parameters, nullptr, batch);
  }

  // What a replay needs to know: library and version, instruction set, thread count.
  virtual std::string build() const = 0;
  // What the engine chose by timing, which another start may choose differently. Empty if nothing was.
  virtual std::string choices() const { return {}; }
  // Bytes of activations, their gradients and scratch memory.
  virtual std::size_t activation_bytes() const = 0;
};

// Errors are one line of text: unknown model, no memory, library errors.
Result<std::unique_ptr<Engine>> make_cpu_engine(const Model& model, const EngineOptions& options);
// The CPU engine's library: "oneDNN 2.6.3 avx512_core".
std::string cpu_library();

}  // namespace tg::engine

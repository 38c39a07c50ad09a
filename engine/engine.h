// The engine's contract: learning on one machine. engine/cpu (oneDNN) and engine/cuda (cuDNN, cuBLAS) implement it;
// what they have in common is in engine/network. engine/replay only pretends: it reports gradients that were made
// before the first step.
//
// An engine owns its activations, scratch memory and threads; parameters and gradients are the caller's flat arrays
// (segment.h), in the home that the engine computes in (kernels/home.h): engine and tensor kernels of a run come from
// one module, so that both can use the same addresses. Samples and results are in host memory. forward, backward,
// evaluate and prefetch are called from one thread at a time; the sink is called on that thread. For fixed build, ISA,
// thread count and batch the gradient repeats bit for bit. Errors: construction may fail (Result); a library failure
// later is a std::runtime_error naming the failing call, which the run's compute thread turns into a FAILED run.
//
// Statistics of batch normalizations (Model::statistics) are the caller's, in host memory, beside the parameters and
// like them part of the replicated state. In training an engine never reads them: it normalizes with what it measures.
// Of a step the caller
//   1. after forward (or later, but before the next one) takes what this member's samples measured: read_statistics;
//   2. makes the mean of all members', weighted by their shares b_r / B, added in rank order in float32;
//   3. moves the running ones towards it, once per step and with the same bits on every member: follow_statistics
//      (model.h), into the next half of its double buffer, so that a step that is undone leaves nothing behind;
//   4. evaluates with the running ones as they are: they are averages already, the parameters' average is not for them.
// Initial values come from initialize(model.statistics, ...): means 0, variances 1. Digest, checkpoint and artefact
// take them as further arrays of the state, under their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/segment.h"
#include "kernels/base/check.h"
#include "kernels/base/status.h"
#include "kernels/host_array.h"

namespace tg::engine {

// count samples: images NCHW float32, count * channels * height * width; labels count. They are augmented on the host,
// by threads that run beside the step: so every engine gets the same bits, and the copy to a device is hidden as well.
struct Batch {
  int count = 0;
  std::uint64_t first_position = 0;  // in the sample stream, of the first sample; the others follow. Dropout's key
  kernels::HostArray images;         // in memory of the engine's home (Home::allocate_host), or any other
  std::vector<std::int32_t> labels;
};

// Of the head that counts in evaluation.
struct EvaluationCounts {
  std::uint64_t correct = 0;  // the label has the highest logit
  std::uint64_t total = 0;
  double loss_sum = 0;          // cross-entropy without smoothing, natural logarithm
  std::uint64_t correct_5 = 0;  // the label has one of the five highest logits

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
  int batch = 1;             // samples of every training batch, exactly
  int evaluation_batch = 1;  // samples of an evaluation batch, at most
  std::uint64_t seed = 0;    // the run's: dropout's key
  // That activation_bytes() may come to; more is an error (kRefused) before any of it is taken. 0 = any.
  std::uint64_t most_activation_bytes = 0;
  // Of a device: the library's algorithms, as choices() of an engine like it said them (engine/cuda/trials/trials.h);
  // what is not among them is timed and chosen. The CPU chooses by rules alone.
  std::string choices = {};
};

class Engine {
 public:
  // Called as soon as the gradient of segments [first, last) is complete; last layer first.
  using SegmentSink = std::function<void(std::size_t first, std::size_t last)>;

  // Called before the parameters of segments [first, last) are read, first layer first; returns once they are there.
  using SegmentGate = std::function<void(std::size_t first, std::size_t last)>;

  virtual ~Engine() = default;
  virtual const SegmentTable& segments() const = 0;
  virtual const SegmentTable& statistics() const = 0;

  // Sum over the batch of the losses: of all heads, as they are weighted and smoothed. parameters:
  // segments().padded_count() floats, read only, and unchanged from the gate's return (or from the call, without one)
  // until backward returns. The batch stays alive and unchanged until then too. What the gate throws goes through; then
  // neither is used any more, and forward may be called again.
  virtual double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) = 0;
  double forward(const float* parameters, const Batch& batch) { return forward(parameters, batch, {}); }
  // gradients[...] = factor * d(sum of losses)/d(parameters) of the last forward: once, and with no evaluation since
  // (they use its memory). Every real element of every segment is overwritten, padding is left as it is (0).
  virtual void backward(float factor, float* gradients, const SegmentSink& sink) = 0;
  // Begins to copy the images of the batch that the next forward gets, where they have to be copied, and returns while
  // that goes on beside what is computed. Called between other calls or by the sink. That forward knows them by the
  // Batch's address and its first position; without it, or with any other batch, they are copied when it is called. So
  // `next` is alive and unchanged from here until the backward of its forward has returned, or a forward or prefetch of
  // another batch, or the engine's destructor. An evaluation between does no harm. Images that lie in ordinary memory
  // are left to forward: their copy would hold up the caller.
  virtual void prefetch(const Batch& /*next*/) {}
  // What the last forward measured: by batch normalization the mean, and the variance with n - 1 below (as PyTorch's
  // running ones have it). statistics().padded_count() floats, padding left as it is.
  virtual void read_statistics(float* measured) const = 0;
  // Batch count <= evaluation_batch. statistics: the running ones.
  virtual EvaluationCounts evaluate(const float* parameters, const float* statistics, const Batch& batch) = 0;
  // Of a model that has none.
  EvaluationCounts evaluate(const float* parameters, const Batch& batch) {
    TG_CHECK(statistics().size() == 0);
    return evaluate(parameters, nullptr, batch);
  }

  // What replay needs to know: library and version, instruction set, thread count.
  virtual std::string build() const = 0;
  // And what it chose by timing, which another start may choose otherwise. Empty where nothing is.
  virtual std::string choices() const { return {}; }
  // Bytes of activations, their gradients and scratch memory.
  virtual std::size_t activation_bytes() const = 0;
};

// One line of text per failure cause: unknown model, no memory, library errors.
Result<std::unique_ptr<Engine>> make_cpu_engine(const Model& model, const EngineOptions& options);
// What it stands on: "oneDNN 2.6.3 avx512_core".
std::string cpu_library();

}  // namespace tg::engine

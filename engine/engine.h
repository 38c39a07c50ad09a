// The engine's contract: learning on one machine. engine/cpu (oneDNN) implements it; engine/cuda will be its twin.
// engine/replay only pretends: it reports gradients that were made before the first step.
//
// An engine owns its activations, scratch memory and threads; parameters and gradients are the caller's flat arrays
// (segment.h), in the home that the engine computes in (kernels/home.h): engine and tensor kernels of a run come from
// one module, so that both can use the same addresses. Samples and results are in host memory. forward, backward
// and evaluate are called from one thread at a time; the sink is called on that thread. For fixed build, ISA, thread
// count and batch the gradient repeats bit for bit. Errors: construction may fail (Result); a library failure later is
// a std::runtime_error naming the failing call, which the run's compute thread turns into a FAILED run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/segment.h"
#include "kernels/base/aligned_array.h"
#include "kernels/base/status.h"

namespace tg::engine {

// count samples: images NCHW float32, count * channels * height * width; labels count.
struct Batch {
  int count = 0;
  AlignedArray<float> images;
  std::vector<std::int32_t> labels;
};

struct EvaluationCounts {
  std::uint64_t correct = 0;
  std::uint64_t total = 0;
  double loss_sum = 0;  // cross-entropy, natural logarithm
};

struct EngineOptions {
  int threads = 1;           // fixed for the engine's life
  int batch = 1;             // samples of every training batch, exactly
  int evaluation_batch = 1;  // samples of an evaluation batch, at most
};

class Engine {
 public:
  // Called as soon as the gradient of segments [first, last) is complete; last layer first.
  using SegmentSink = std::function<void(std::size_t first, std::size_t last)>;

  // Called before the parameters of segments [first, last) are read, first layer first; returns once they are there.
  using SegmentGate = std::function<void(std::size_t first, std::size_t last)>;

  virtual ~Engine() = default;
  virtual const SegmentTable& segments() const = 0;

  // Sum over the batch of the cross-entropy losses. parameters: segments().padded_count() floats, read only, and
  // unchanged from the gate's return (or from the call, without one) until backward returns. The batch stays alive and
  // unchanged until then too. What the gate throws goes through; forward may be called again after that.
  virtual double forward(const float* parameters, const Batch& batch, const SegmentGate& gate) = 0;
  double forward(const float* parameters, const Batch& batch) { return forward(parameters, batch, {}); }
  // gradients[...] = factor * d(sum of losses)/d(parameters) of the last forward; every real element of every segment
  // is overwritten, padding is left as it is (0).
  virtual void backward(float factor, float* gradients, const SegmentSink& sink) = 0;
  // Batch count <= evaluation_batch.
  virtual EvaluationCounts evaluate(const float* parameters, const Batch& batch) = 0;

  // What replay needs to know: library and version, instruction set, thread count.
  virtual std::string build() const = 0;
};

// One line of text per failure cause: unknown model, no memory, library errors.
Result<std::unique_ptr<Engine>> make_cpu_engine(const Model& model, const EngineOptions& options);
// What it stands on: "oneDNN 2.6.3 avx512_core".
std::string cpu_library();

}  // namespace tg::engine

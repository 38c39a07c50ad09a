#include "engine/cpu/cpu_engine.h"

#include <omp.h>

#include <new>
#include <utility>

#include "engine/cpu/loss.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace cpu {
namespace {

// Before any primitive is made: they are tuned for the thread count that they see.
const EngineOptions& with_threads(const EngineOptions& options) {
  omp_set_num_threads(options.threads);
  return options;
}

}  // namespace

CpuEngine::CpuEngine(Model model, const EngineOptions& options)
    : model_(std::move(model)),
      options_(with_threads(options)),
      training_(device_, model_, options.batch, true),
      evaluation_(device_, model_, options.evaluation_batch, false),
      probabilities_(static_cast<std::size_t>(options.batch) * static_cast<std::size_t>(model_.classes)) {
  device_.allocate_scratchpad();
}

// OpenMP keeps the number per calling thread, and the engine's caller may be any thread.
void CpuEngine::claim_threads() const { omp_set_num_threads(options_.threads); }

double CpuEngine::forward(const float* parameters, const Batch& batch, const SegmentGate& gate) {
  TG_CHECK(batch.count == options_.batch, batch.count, options_.batch);
  claim_threads();
  const std::span<const float> logits = training_.forward(parameters, batch.images.data(), batch.count, gate);
  labels_.assign(batch.labels.begin(), batch.labels.end());
  return cross_entropy(logits, labels_, probabilities_).loss_sum;
}

void CpuEngine::backward(float factor, float* gradients, const SegmentSink& sink) {
  TG_CHECK(labels_.size() == static_cast<std::size_t>(options_.batch), labels_.size());
  claim_threads();
  cross_entropy_gradient(probabilities_, labels_, factor, training_.logits_gradient());
  training_.backward(gradients, sink);
}

EvaluationCounts CpuEngine::evaluate(const float* parameters, const Batch& batch) {
  claim_threads();
  const std::span<const float> logits = evaluation_.forward(parameters, batch.images.data(), batch.count, {});
  const std::span<const std::int32_t> labels(batch.labels.data(), static_cast<std::size_t>(batch.count));
  return cross_entropy(logits.first(labels.size() * static_cast<std::size_t>(model_.classes)), labels, {});
}

std::string CpuEngine::build() const {
  return library_version() + ", " + std::to_string(options_.threads) + (options_.threads == 1 ? " thread" : " threads");
}

}  // namespace cpu

std::string cpu_library() { return cpu::library_version(); }

Result<std::unique_ptr<Engine>> make_cpu_engine(const Model& model, const EngineOptions& options) {
  if (options.threads < 1 || options.batch < 1 || options.evaluation_batch < 1) {
    return Error{ErrorKind::kInvalidJob,
                 "the engine needs at least one thread and batches of at least one sample; got " +
                     std::to_string(options.threads) + " threads, batch " + std::to_string(options.batch) +
                     ", evaluation batch " + std::to_string(options.evaluation_batch)};
  }
  try {
    return std::unique_ptr<Engine>(std::make_unique<cpu::CpuEngine>(model, options));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed, "no memory for " + model.name + " at batch " + std::to_string(options.batch) +
                                         " and evaluation batch " + std::to_string(options.evaluation_batch) +
                                         "; make them smaller"};
  } catch (const std::exception& e) {
    return Error{ErrorKind::kFailed, e.what()};
  }
}

}  // namespace tg::engine

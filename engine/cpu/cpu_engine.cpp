#include "engine/cpu/cpu_engine.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "engine/cpu/loss.h"
#include "engine/network/make_engine.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace cpu {
namespace {

// Sets the thread count before any primitive is made: each is tuned for the count at that time.
const EngineOptions& with_threads(const EngineOptions& options) {
  omp_set_num_threads(options.threads);
  return options;
}

// How many samples are evaluated at once: their activations stay below kEvaluationBytes and below the memory that
// training leaves.
int evaluation_batch(const Model& model, const EngineOptions& options, std::size_t scratch) {
  std::size_t allowed = kEvaluationBytes;
  if (const std::size_t most = options.most_activation_bytes; most != 0)
    allowed = std::min(allowed, most > scratch ? most - scratch : 0);
  const std::size_t samples = std::max<std::size_t>(allowed / evaluation_bytes_of_sample(model, false), 1);
  return static_cast<int>(std::min(samples, static_cast<std::size_t>(options.evaluation_batch)));
}

// Thrown before the memory is allocated: a machine that runs out of memory may kill any process.
std::size_t allowed(std::size_t bytes, std::size_t scratch, const Model& model, const EngineOptions& options) {
  const std::size_t all = bytes + scratch, most = options.most_activation_bytes;
  if (most != 0 && all > most) throw too_large(model, options, all, most, "left for them");
  return bytes;
}

}  // namespace

CpuEngine::CpuEngine(Model model, const EngineOptions& options, bool sharing)
    : model_(std::move(model)),
      options_(with_threads(options)),
      training_(library_, model_, {options.batch, true, options.seed, sharing}),
      evaluation_(library_, model_,
                  {evaluation_batch(model_, options, library_.scratchpad_bytes()), false, options.seed, sharing}),
      memory_(allowed(std::max(training_.bytes(), evaluation_.bytes()), library_.scratchpad_bytes(), model_, options),
              options.advanced),
      probabilities_(training_.heads().size()) {
  library_.allocate_scratchpad();
  training_.bind(memory_.data());
  evaluation_.bind(memory_.data());
  for (std::vector<double>& each : probabilities_)
    each.resize(static_cast<std::size_t>(options.batch) * static_cast<std::size_t>(model_.classes));
}

// OpenMP keeps the number per calling thread, and the engine's caller may be any thread.
void CpuEngine::claim_threads() const { omp_set_num_threads(options_.threads); }

double CpuEngine::forward(const float* parameters, const Batch& batch, const SegmentGate& gate) {
  TG_CHECK(batch.count == options_.batch, batch.count, options_.batch);
  claim_threads();
  pass_ = {parameters, nullptr, batch.first_position};
  training_.forward(pass_, batch.images.data(), batch.count, gate);
  labels_.assign(batch.labels.begin(), batch.labels.end());
  double sum = 0;
  for (std::size_t head = 0; head < probabilities_.size(); ++head) {
    const CrossEntropy& loss = training_.heads()[head].loss;
    const double plain = cross_entropy(training_.logits(head), labels_, probabilities_[head]).loss_sum;
    const Targets targets{loss.smoothing, model_.class_weights};
    sum += loss.weight * (targets.plain() ? plain : cross_entropy_against(targets, probabilities_[head], labels_));
  }
  return sum;
}

void CpuEngine::backward(float factor, float* gradients, const SegmentSink& sink) {
  TG_CHECK(labels_.size() == static_cast<std::size_t>(options_.batch), labels_.size());
  claim_threads();
  for (std::size_t head = 0; head < probabilities_.size(); ++head) {
    const CrossEntropy& loss = training_.heads()[head].loss;
    cross_entropy_gradient({loss.smoothing, model_.class_weights}, probabilities_[head], labels_, factor * loss.weight,
                           training_.logits_gradient(head));
  }
  training_.backward(pass_, gradients, sink);
  labels_.clear();  // the evaluation uses the activations' memory
}

EvaluationCounts CpuEngine::evaluate(const float* parameters, const float* statistics, const Batch& batch,
                                     std::span<float> logits_of_all) {
  TG_CHECK(statistics != nullptr || model_.statistics.size() == 0, model_.name);
  claim_threads();
  labels_.clear();  // the activations of the last forward are overwritten
  const auto classes = static_cast<std::size_t>(model_.classes);
  EvaluationCounts all;
  for (int done = 0; done < batch.count; done += evaluation_.batch()) {
    const int count = std::min(evaluation_.batch(), batch.count - done);
    const std::size_t first = static_cast<std::size_t>(done) * model_.input.elements();
    evaluation_.forward({parameters, statistics, 0}, batch.images.data() + first, count, {});
    const std::span<const std::int32_t> labels(batch.labels.data() + done, static_cast<std::size_t>(count));
    const std::span<const float> logits =
        evaluation_.logits(evaluation_.heads().size() - 1).first(labels.size() * classes);
    all += cross_entropy(logits, labels, {});
    if (!logits_of_all.empty())
      std::ranges::copy(logits, logits_of_all.subspan(static_cast<std::size_t>(done) * classes).begin());
  }
  return all;
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
  return make_engine(model, options, [&] { return std::make_unique<cpu::CpuEngine>(model, options); });
}

}  // namespace tg::engine

#include "engine/replay/replay_engine.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "engine/replay/gaussian.h"
#include "engine/replay/recorded.h"

namespace tg::engine {
namespace {

constexpr std::size_t kStagedElements = 64 * 1024;  // elements drawn here at a time and copied to the memory space

class ReplayEngine final : public Engine {
 public:
  ReplayEngine(const Model& model, ReplayOptions options, std::vector<float> recorded, kernels::MemorySpace& space)
      : segments_(model.segments),
        statistics_(model.statistics),
        options_(std::move(options)),
        recorded_(std::move(recorded)),
        tensors_(space.make_kernels()) {}

  const SegmentTable& segments() const override { return segments_; }
  const SegmentTable& statistics() const override { return statistics_; }
  using Engine::forward;
  // A gradient depends on all parameters, so the previous step must be complete, as with any other engine.
  double forward(const float*, const Batch&, const SegmentGate& gate) override {
    if (gate) gate(0, segments_.size());
    return 0;
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override;
  void read_statistics(float* measured) const override { initialize(statistics_, options_.seed, measured); }
  EvaluationCounts evaluate(const float*, const float*, const Batch&, std::span<float>) override { return {}; }
  using Engine::evaluate;
  std::string build() const override;
  std::size_t activation_bytes() const override { return 0; }

 private:
  void fill(float* gradients);

  const SegmentTable segments_, statistics_;
  const ReplayOptions options_;
  std::vector<float> recorded_;  // until they are in the caller's array
  const std::unique_ptr<kernels::TensorKernels> tensors_;
  const float* filled_ = nullptr;
};

void ReplayEngine::backward(float, float* gradients, const SegmentSink& sink) {
  if (filled_ != gradients) fill(gradients);
  for (std::size_t s = segments_.size(); s > 0; --s) sink(s - 1, s);
}

void ReplayEngine::fill(float* gradients) {
  TG_CHECK(filled_ == nullptr || options_.path.empty());  // recorded gradients serve one array
  const GaussianGradients drawn(options_.zeros);
  AlignedArray<float> staged(kStagedElements);
  const float* next = recorded_.data();
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const kernels::Floats segment{gradients + segments_[s].offset, segments_[s].element_count};
    if (!options_.path.empty()) {
      tensors_->copy_in(std::as_bytes(std::span(next, segment.size())), segment);
      next += segment.size();
      continue;
    }
    for (std::size_t first = 0; first < segment.size(); first += kStagedElements) {
      const std::span<float> values = staged.span().first(std::min(kStagedElements, segment.size() - first));
      drawn.fill(options_.seed, options_.rank, static_cast<std::uint32_t>(s), values, first);
      tensors_->copy_in(std::as_bytes(values), segment.subspan(first, values.size()));
    }
  }
  recorded_ = {};
  filled_ = gradients;
}

std::string ReplayEngine::build() const {
  if (!options_.path.empty()) return "replay of " + options_.path;
  char text[64];
  std::snprintf(text, sizeof text, "replay of drawn gradients, %g zeros", options_.zeros);
  return text;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_replay_engine(const Model& model, const ReplayOptions& options,
                                                   kernels::MemorySpace& space) {
  try {
    ReplayOptions resolved = options;
    std::vector<float> recorded;
    if (!options.path.empty()) {
      resolved.path = recorded_path(options.path, options.rank);
      Result<std::vector<float>> read = read_recorded(resolved.path, model);
      if (!read.ok()) return read.error();
      recorded = std::move(read).value();
    }
    return std::unique_ptr<Engine>(std::make_unique<ReplayEngine>(model, resolved, std::move(recorded), space));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed, "no memory for the recorded gradients of " + model.name};
  }
}

}  // namespace tg::engine

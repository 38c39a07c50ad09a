#include "engine/cpu/stages/stage.h"
#include "engine/cpu/team.h"
#include "engine/cpu/windows.h"

namespace tg::engine::cpu {
namespace {

// The threads share the samples.
class AverageStage final : public Stage {
 public:
  AverageStage(const StageContext& context, Windows windows)
      : Stage(context),
        windows_(std::move(windows)),
        input_(context.inputs[0]),
        output_(context.output),
        samples_(static_cast<std::size_t>(context.batch)),
        wanted_(context.wants(0)) {
    context.library.note_implementation(context.name(), "own");
  }

  void forward(const Pass& /*pass*/) override {
    const float* const x = floats_of(input_.value);
    float* const y = floats_of(output_.value);
    team_.share_out(samples_, [&](std::size_t first, std::size_t last, std::size_t) {
      for (std::size_t sample = first; sample < last; ++sample)
        windows_.forward(x + sample * inputs(), y + sample * outputs());
    });
  }
  void backward_data(const Pass& /*pass*/) override {
    if (!wanted_) return;
    const float* const dy = floats_of(output_.gradient);
    float* const dx = floats_of(input_.gradient);
    team_.share_out(samples_, [&](std::size_t first, std::size_t last, std::size_t) {
      for (std::size_t sample = first; sample < last; ++sample)
        windows_.backward(dy + sample * outputs(), dx + sample * inputs());
    });
  }

 private:
  // The number of floats of a sample.
  std::size_t inputs() const { return windows_.channels * windows_.height * windows_.width; }
  std::size_t outputs() const { return windows_.channels * windows_.rows.size() * windows_.columns.size(); }

  const Windows windows_;
  const Activation input_, output_;
  const std::size_t samples_;
  const bool wanted_;
  Team team_;
};

Windows windows_of(const ImageShape& from, std::vector<Span> rows, std::vector<Span> columns) {
  return {static_cast<std::size_t>(from.channels), static_cast<std::size_t>(from.height),
          static_cast<std::size_t>(from.width), std::move(rows), std::move(columns)};
}

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const AdaptiveAverage& /*layer*/) {
  const ImageShape &from = context.inputs[0].shape, &to = context.output.shape;
  return std::make_unique<AverageStage>(
      context, windows_of(from, adaptive_spans(from.height, to.height), adaptive_spans(from.width, to.width)));
}

}  // namespace tg::engine::cpu

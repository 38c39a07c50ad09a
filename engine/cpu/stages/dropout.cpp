#include "engine/graph/dropout.h"

#include "engine/cpu/stages/stage.h"
#include "engine/cpu/team.h"

namespace tg::engine::cpu {
namespace {

// Training only. The mask is drawn again for backward: that costs no more than reading it would, and nothing is kept.
class DropoutStage final : public Stage {
 public:
  DropoutStage(const StageContext& context, const Dropout& layer)
      : Stage(context),
        mask_(layer.probability, context.seed, context.plan.op),
        input_(context.inputs[0]),
        output_(context.output),
        samples_(static_cast<std::size_t>(context.batch)),
        features_(float_count(output_.value) / samples_),
        wanted_(context.wants(0)) {
    context.library.note_implementation(context.name(), "own");
  }

  void forward(const Pass& pass) override { apply(pass, floats_of(input_.value), floats_of(output_.value)); }
  void backward_data(const Pass& pass) override {
    if (wanted_) apply(pass, floats_of(output_.gradient), floats_of(input_.gradient));
  }

 private:
  void apply(const Pass& pass, const float* x, float* y) {
    team_.share_out(samples_, [&](std::size_t first, std::size_t last, std::size_t) {
      for (std::size_t sample = first; sample < last; ++sample)
        mask_.apply(pass.first_position + sample, {x + sample * features_, features_},
                    {y + sample * features_, features_});
    });
  }

  const DropoutMask mask_;
  const Activation input_, output_;
  const std::size_t samples_, features_;
  const bool wanted_;
  Team team_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Dropout& layer) {
  return std::make_unique<DropoutStage>(context, layer);
}

}  // namespace tg::engine::cpu

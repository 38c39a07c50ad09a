#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

// The output may share the first input's memory, and one input's gradient the output's.
class AddStage final : public Stage {
 public:
  explicit AddStage(const StageContext& context)
      : Stage(context),
        library_(context.library),
        inputs_(context.inputs),
        output_(context.output),
        count_(context.floats(output_.shape)),
        relu_(context.plan.relu),
        contributions_(context.plan.contributions) {}

  void forward(const Pass& /*pass*/) override {
    add(count_, inputs_[0].value.floats(), inputs_[1].value.floats(), relu_, output_.value.floats(),
        library_.compute());
  }

  void backward_data(const Pass& /*pass*/) override {
    float* const dy = output_.gradient.floats();
    if (relu_) relu_gradient(count_, output_.value.floats(), dy, dy, library_.compute());
    for (std::size_t input = 0; input < inputs_.size(); ++input) {
      if (contributions_[input] == Contribution::kNone) continue;
      float* const dx = inputs_[input].gradient.floats();
      if (dx == dy) continue;
      if (contributions_[input] == Contribution::kAdds)
        accumulate(count_, dy, dx, library_.compute());
      else
        TG_CUDA(cudaMemcpyAsync(dx, dy, count_ * sizeof(float), cudaMemcpyDeviceToDevice, library_.compute()));
    }
  }

 private:
  Library& library_;
  const std::vector<Activation> inputs_;
  const Activation output_;
  const std::size_t count_;
  const bool relu_;
  const std::vector<Contribution> contributions_;  // empty in evaluation
};

class ConcatStage final : public Stage {
 public:
  explicit ConcatStage(const StageContext& context)
      : Stage(context),
        library_(context.library),
        output_(context.output),
        channels_(static_cast<std::size_t>(output_.shape.channels)) {
    std::size_t begin = 0;
    for (std::size_t input = 0; input < context.inputs.size(); ++input) {
      const Planes planes = planes_of(context, context.inputs[input].shape);
      parts_.push_back({context.inputs[input], planes, begin,
                        context.wants(input) ? context.plan.contributions[input] : Contribution::kNone});
      begin += planes.channels;
    }
  }

  void forward(const Pass& /*pass*/) override {
    for (const Part& part : parts_)
      join_channels(part.planes, part.begin, channels_, part.input.value.floats(), output_.value.floats(),
                    library_.compute());
  }

  void backward_data(const Pass& /*pass*/) override {
    for (const Part& part : parts_)
      if (part.contribution != Contribution::kNone)
        split_channels(part.planes, part.begin, channels_, output_.gradient.floats(),
                       part.contribution == Contribution::kAdds, part.input.gradient.floats(), library_.compute());
  }

 private:
  struct Part {
    Activation input;
    Planes planes;
    std::size_t begin;  // channel
    Contribution contribution;
  };
  Library& library_;
  const Activation output_;
  const std::size_t channels_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Add& /*layer*/) {
  return std::make_unique<AddStage>(context);
}

std::unique_ptr<Stage> make(const StageContext& context, const Concat& /*layer*/) {
  return std::make_unique<ConcatStage>(context);
}

}  // namespace tg::engine::cuda

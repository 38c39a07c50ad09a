#include "engine/cpu/elementwise.h"
#include "engine/cpu/stages/stage.h"
#include "engine/cpu/team.h"

namespace tg::engine::cpu {
namespace {

// The output may share the first input's memory, and one input's gradient the output's.
class AddStage final : public Stage {
 public:
  explicit AddStage(const StageContext& context)
      : Stage(context), inputs_(context.inputs), output_(context.output), relu_(context.plan.relu) {
    for (std::size_t input = 0; input < inputs_.size(); ++input)
      contributions_.push_back(context.wants(input) ? context.plan.contributions[input] : Contribution::kNone);
    context.library.note_implementation(context.name(), "own");
  }

  void forward(const Pass& /*pass*/) override {
    const float *const a = floats_of(inputs_[0].value), *const b = floats_of(inputs_[1].value);
    float* const y = floats_of(output_.value);
    team_.share_out(float_count(output_.value), [&](std::size_t first, std::size_t last, std::size_t) {
      add(a + first, b + first, y + first, last - first, relu_);
    });
  }

  void backward_data(const Pass& /*pass*/) override {
    const float* const y = floats_of(output_.value);
    float* const dy = floats_of(output_.gradient);
    team_.share_out(float_count(output_.value), [&](std::size_t first, std::size_t last, std::size_t) {
      const std::size_t count = last - first;
      if (relu_) mask(y + first, dy + first, count);
      for (std::size_t input = 0; input < inputs_.size(); ++input) {
        if (contributions_[input] == Contribution::kNone) continue;
        float* const dx = floats_of(inputs_[input].gradient);
        if (dx == dy) continue;
        const Rows all{1, count, count, count};
        contributions_[input] == Contribution::kAdds ? accumulate(dy + first, dx + first, count)
                                                     : copy_rows(all, dy + first, dx + first);
      }
    });
  }

 private:
  const std::vector<Activation> inputs_;
  const Activation output_;
  const bool relu_;
  std::vector<Contribution> contributions_;
  Team team_;
};

// Channels lie side by side in every pixel.
class ConcatStage final : public Stage {
 public:
  explicit ConcatStage(const StageContext& context) : Stage(context), output_(context.output) {
    const dnnl::memory::dims dims = output_.value.get_desc().dims();
    channels_ = static_cast<std::size_t>(dims[1]);
    pixels_ = static_cast<std::size_t>(dims[0] * dims[2] * dims[3]);
    std::size_t begin = 0;
    for (std::size_t input = 0; input < context.inputs.size(); ++input) {
      const auto count = static_cast<std::size_t>(context.inputs[input].value.get_desc().dims()[1]);
      parts_.push_back({context.inputs[input], begin, count,
                        context.wants(input) ? context.plan.contributions[input] : Contribution::kNone});
      begin += count;
    }
    context.library.note_implementation(context.name(), "own");
  }

  void forward(const Pass& /*pass*/) override {
    float* const y = floats_of(output_.value);
    team_.share_out(pixels_, [&](std::size_t first, std::size_t last, std::size_t) {
      for (const Part& part : parts_)
        copy_rows({last - first, part.count, part.count, channels_}, floats_of(part.input.value) + first * part.count,
                  y + first * channels_ + part.begin);
    });
  }

  void backward_data(const Pass& /*pass*/) override {
    const float* const dy = floats_of(output_.gradient);
    team_.share_out(pixels_, [&](std::size_t first, std::size_t last, std::size_t) {
      for (const Part& part : parts_) {
        if (part.contribution == Contribution::kNone) continue;
        const Rows rows{last - first, part.count, channels_, part.count};
        const float* const from = dy + first * channels_ + part.begin;
        float* const to = floats_of(part.input.gradient) + first * part.count;
        part.contribution == Contribution::kAdds ? accumulate_rows(rows, from, to) : copy_rows(rows, from, to);
      }
    });
  }

 private:
  struct Part {
    Activation input;
    std::size_t begin, count;  // channels
    Contribution contribution;
  };
  const Activation output_;
  std::size_t channels_ = 0, pixels_ = 0;
  std::vector<Part> parts_;
  Team team_;
};

}  // namespace

std::unique_ptr<Stage> make(const StageContext& context, const Add& /*layer*/) {
  return std::make_unique<AddStage>(context);
}

std::unique_ptr<Stage> make(const StageContext& context, const Concat& /*layer*/) {
  return std::make_unique<ConcatStage>(context);
}

}  // namespace tg::engine::cpu

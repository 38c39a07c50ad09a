#include "engine/graph/plan.h"

#include <algorithm>
#include <variant>

#include "engine/graph/shapes.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

template <class Kind>
bool is(const Operator& one) {
  return std::holds_alternative<Kind>(one.attributes);
}

bool fuses_relu(const Operator& one) {
  return is<Convolution>(one) || is<Dense>(one) || is<BatchNormalization>(one) || is<Add>(one);
}

class Planner {
 public:
  Planner(const Model& model, const PlanOptions& options) : model_(model), options_(options) {
    const std::size_t values = model.operators.size() + 1;
    plan_.shapes = infer_shapes(model).value();
    plan_.value_buffers.assign(values, kNoBuffer);
    plan_.gradient_buffers.assign(values, kNoBuffer);
  }

  Plan make() {
    find_needed();
    find_consumers();
    make_stages();
    find_heads();
    find_wanted();
    count_reads();
    place_values();
    if (options_.training) place_gradients();
    return std::move(plan_);
  }

 private:
  const Operator& operator_of(const StagePlan& stage) const { return model_.operators[stage.op]; }

  // Walks backward from the heads that count and marks the operators that they depend on.
  void find_needed() {
    needed_.assign(model_.operators.size(), false);
    for (std::size_t i = model_.operators.size(); i > 0; --i) {
      const Operator& one = model_.operators[i - 1];
      if (const auto* head = std::get_if<CrossEntropy>(&one.attributes))
        needed_[i - 1] = options_.training || !head->auxiliary;
      if (!needed_[i - 1]) continue;
      for (const std::size_t value : one.inputs)
        if (value > 0) needed_[value - 1] = true;
    }
  }

  void find_consumers() {
    consumers_.assign(model_.operators.size() + 1, {});
    for (std::size_t i = 0; i < model_.operators.size(); ++i)
      if (needed_[i])
        for (const std::size_t value : model_.operators[i].inputs) consumers_[value].push_back(i);
  }

  // The only operator that takes a value, if it is of that kind.
  template <class Kind>
  const Operator* sole_consumer(std::size_t value) const {
    if (consumers_[value].size() != 1) return nullptr;
    const Operator& one = model_.operators[consumers_[value].front()];
    return is<Kind>(one) ? &one : nullptr;
  }

  bool is_view(const Operator& one) const {
    if (const auto* dropout = std::get_if<Dropout>(&one.attributes))
      return !options_.training || dropout->probability == 0;
    const ImageShape& input = plan_.shapes[one.inputs[0]];
    return is<Flatten>(one) && (options_.canonical_images || (input.height == 1 && input.width == 1));
  }

  void make_stages() {
    std::vector<bool> fused(model_.operators.size(), false);
    std::vector<bool> mask_left(model_.operators.size() + 1, false);  // by value
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator& one = model_.operators[i];
      if (!needed_[i] || fused[i] || is<CrossEntropy>(one)) continue;
      StagePlan stage{.op = i, .inputs = one.inputs, .output = i + 1};
      if (fuses_relu(one) && sole_consumer<Relu>(stage.output) != nullptr) {
        const std::size_t relu = consumers_[stage.output].front();
        fused[relu] = true;
        stage.relu = true;
        stage.output = relu + 1;
      }
      if (is<Convolution>(one) && stage.relu && options_.training)
        stage.mask_left = mask_left[stage.output] = sole_consumer<MaxPooling>(stage.output) != nullptr;
      if (is<MaxPooling>(one)) stage.mask_taken = mask_left[stage.inputs[0]];
      stage.view = is_view(one);
      plan_.stages.push_back(std::move(stage));
    }
  }

  void find_heads() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const auto* loss = std::get_if<CrossEntropy>(&model_.operators[i].attributes);
      if (loss != nullptr && needed_[i]) plan_.heads.push_back({*loss, model_.operators[i].inputs[0]});
    }
    std::stable_partition(plan_.heads.begin(), plan_.heads.end(),
                          [](const HeadPlan& head) { return head.loss.auxiliary; });
  }

  // A value's gradient is wanted if operators before it have parameters that are trained. The losses write theirs
  // always.
  void find_wanted() {
    wanted_.assign(plan_.shapes.size(), false);
    if (!options_.training) return;
    for (const StagePlan& stage : plan_.stages)
      wanted_[stage.output] =
          std::ranges::any_of(segments_of(operator_of(stage)), [&](auto s) { return !model_.segments[s].frozen; }) ||
          std::any_of(stage.inputs.begin(), stage.inputs.end(), [&](std::size_t value) { return wanted_[value]; });
    for (const HeadPlan& head : plan_.heads) wanted_[head.logits] = true;
  }

  // The last slot that reads a value itself, not counting its views.
  void count_reads() {
    last_read_.assign(plan_.shapes.size(), 0);
    const auto read = [&](std::size_t value, std::size_t slot) {
      last_read_[value] = std::max(last_read_[value], slot);
    };
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const StagePlan& stage = plan_.stages[s];
      const Operator& one = operator_of(stage);
      if (stage.view) continue;
      for (const std::size_t value : stage.inputs) read(value, plan_.forward_slot(s));
      if (!wanted_[stage.output]) continue;
      const std::size_t slot = plan_.backward_slot(s);
      if (is<Convolution>(one) || is<Dense>(one) || is<BatchNormalization>(one) || is<LocalResponseNormalization>(one))
        read(stage.inputs[0], slot);
      // Batch normalization keeps the signs of its relu beside its values.
      const bool masks = stage.relu && !stage.mask_left && !is<BatchNormalization>(one);
      if (masks || stage.mask_taken || is<Relu>(one)) read(stage.output, slot);
    }
    for (const HeadPlan& head : plan_.heads) read(head.logits, plan_.loss_slot());
  }

  std::size_t new_buffer() {
    plan_.lifetimes.emplace_back();
    return plan_.lifetimes.size() - 1;
  }

  bool may_overwrite_input(const StagePlan& stage) const {
    const Operator& one = operator_of(stage);
    if (!options_.sharing) return false;
    return is<Relu>(one) || is<Add>(one) || is<Dropout>(one) || (is<BatchNormalization>(one) && !options_.training);
  }

  // Whether nothing reads the first input's buffer after the stage's forward, through any value.
  bool input_is_free(std::size_t s) const {
    const std::size_t buffer = plan_.value_buffers[plan_.stages[s].inputs[0]];
    for (std::size_t value = 0; value < last_read_.size(); ++value)
      if (plan_.value_buffers[value] == buffer && last_read_[value] > plan_.forward_slot(s)) return false;
    // A later view of it has no buffer yet: the view's readers are reads of this buffer.
    for (std::size_t later = s + 1; later < plan_.stages.size(); ++later) {
      const StagePlan& other = plan_.stages[later];
      if (other.view && plan_.value_buffers[other.inputs[0]] == buffer) return false;
    }
    return true;
  }

  void place_values() {
    plan_.value_buffers[0] = new_buffer();
    plan_.lifetimes[0].extend(0);
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const StagePlan& stage = plan_.stages[s];
      const bool shares = stage.view || (may_overwrite_input(stage) && input_is_free(s));
      const std::size_t buffer = shares ? plan_.value_buffers[stage.inputs[0]] : new_buffer();
      plan_.value_buffers[stage.output] = buffer;
      if (!stage.view) plan_.lifetimes[buffer].extend(plan_.forward_slot(s));
    }
    for (std::size_t value = 0; value < last_read_.size(); ++value)
      if (plan_.value_buffers[value] != kNoBuffer && last_read_[value] > 0)
        plan_.lifetimes[plan_.value_buffers[value]].extend(last_read_[value]);
  }

  // The gradient of an elementwise stage's input may take over the output's gradient, which has no reader left, if
  // there is one input and no earlier stage has begun its gradient.
  bool may_take_over(const StagePlan& stage) const {
    const Operator& one = operator_of(stage);
    if (stage.view) return true;
    return options_.sharing && (is<Relu>(one) || is<Add>(one) || is<Dropout>(one));
  }

  void place_gradients() {
    std::vector<std::size_t>& gradients = plan_.gradient_buffers;
    for (const HeadPlan& head : plan_.heads) {
      TG_CHECK(wanted_[head.logits] && gradients[head.logits] == kNoBuffer, model_.name);
      gradients[head.logits] = new_buffer();
      plan_.lifetimes[gradients[head.logits]].extend(plan_.loss_slot());
    }
    for (std::size_t s = plan_.stages.size(); s > 0; --s) {
      StagePlan& stage = plan_.stages[s - 1];
      const std::size_t slot = plan_.backward_slot(s - 1), output = gradients[stage.output];
      stage.contributions.assign(stage.inputs.size(), Contribution::kNone);
      if (!wanted_[stage.output]) continue;
      plan_.lifetimes[output].extend(slot);
      bool taken_over = !may_take_over(stage);
      for (std::size_t k = 0; k < stage.inputs.size(); ++k) {
        const std::size_t value = stage.inputs[k];
        if (!wanted_[value]) continue;
        if (gradients[value] == kNoBuffer) {
          gradients[value] = taken_over ? new_buffer() : output;
          taken_over = true;
          stage.contributions[k] = Contribution::kWrites;
        } else {
          stage.contributions[k] = Contribution::kAdds;
        }
        plan_.lifetimes[gradients[value]].extend(slot);
      }
    }
  }

  const Model& model_;
  const PlanOptions options_;
  Plan plan_;
  std::vector<bool> needed_;                         // by operator
  std::vector<std::vector<std::size_t>> consumers_;  // by value: operators
  std::vector<bool> wanted_;                         // by value
  std::vector<std::size_t> last_read_;               // by value: slot
};

}  // namespace

Plan make_plan(const Model& model, const PlanOptions& options) { return Planner(model, options).make(); }

}  // namespace tg::engine

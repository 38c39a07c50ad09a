#include "engine/cuda/network.h"

#include <stdexcept>
#include <utility>

#include "kernels/base/check.h"

namespace tg::engine::cuda {
namespace {

// Makes the call; what fails there names the operator.
template <class Call>
auto of_operator(const std::string& name, const Call& call) {
  try {
    return call();
  } catch (const WorkspaceTooSmall&) {  // does so
    throw;
  } catch (const std::runtime_error& e) {
    const std::string said = e.what();
    throw std::runtime_error(said.starts_with(name) ? said : name + ": " + said);
  }
}

// All that the libraries' calls for a layer depend on, but for the addresses.
std::string text_of_layer(const StageContext& context) {
  std::string text;
  const auto add = [&](const auto... numbers) { ((text += std::to_string(numbers) + " "), ...); };
  if (const auto* convolution = std::get_if<Convolution>(&context.op().attributes)) {
    const Window& window = convolution->window;
    const Padding& padding = window.padding;
    text = "convolution ";
    add(convolution->groups, window.kernel, window.stride, window.dilation, padding.top, padding.left, padding.bottom,
        padding.right);
  } else if (const auto* dense = std::get_if<Dense>(&context.op().attributes)) {
    text = "dense ";
    add(dense->bias.has_value());
  } else {
    return {};
  }
  const ImageShape &input = context.inputs[0].shape, &output = context.output.shape;
  add(context.plan.relu, context.batch, input.channels, input.height, input.width, output.channels, output.height,
      output.width);
  return text;
}

}  // namespace

Network::Network(Library& library, const Model& model, const NetworkOptions& options)
    : library_(library),
      model_(model),
      options_(options),
      plan_(make_plan(model, {.training = options.training, .canonical_images = true})) {
  for (const Lifetime& lifetime : plan_.lifetimes) arena_.add(lifetime);  // the plan's numbers are the arena's
  images_ = activation(0).value;
  for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) running_.push_back(make_running(stage));
  for (const HeadPlan& head : plan_.heads) heads_.push_back(make_head(head));
  placement_ = place(arena_.needs());
}

Activation Network::activation(std::size_t value) {
  const ImageShape& shape = plan_.shapes[value];
  const std::size_t bytes = static_cast<std::size_t>(options_.batch) * shape.elements() * sizeof(float);
  const std::size_t gradient = plan_.gradient_buffers[value];
  return {shape, arena_.view(plan_.value_buffers[value], bytes),
          gradient == kNoBuffer ? View() : arena_.view(gradient, bytes)};
}

Network::Running Network::make_running(std::size_t stage) {
  const StagePlan& plan = plan_.stages[stage];
  StageContext context{library_,
                       arena_,
                       model_,
                       plan,
                       options_.batch,
                       options_.training,
                       options_.seed,
                       plan_.forward_slot(stage),
                       plan_.backward_slot(stage),
                       {},
                       activation(plan.output)};
  Running running;
  running.name = context.name();
  running.backward = plan_.gradient_buffers[plan.output] != kNoBuffer;
  for (std::size_t input = 0; input < plan.inputs.size(); ++input) {
    Activation taken = activation(plan.inputs[input]);
    if (context.wants(input) && context.adds(input) && !adds_itself(context.op())) {
      const std::size_t count = context.floats(taken.shape);
      const View own = plan.view ? context.output.gradient : context.backward_scratch(count * sizeof(float));
      running.additions.push_back({own, taken.gradient, count});
      taken.gradient = own;
    }
    context.inputs.push_back(taken);
  }
  if (plan.view) return running;
  running.layer = text_of_layer(context);
  running.stage = of_operator(running.name, [&] { return make_stage(context); });
  return running;
}

// Between forward and backward nothing else runs, so what the losses keep lives in their one slot.
Network::Head Network::make_head(const HeadPlan& plan) {
  Head head{{options_.batch, model_.classes, options_.batch, plan.loss.smoothing},
            plan.loss.weight,
            activation(plan.logits),
            {},
            {}};
  const auto in_slot = [&](std::size_t bytes) {
    return arena_.view(arena_.add({plan_.loss_slot(), plan_.loss_slot()}), bytes);
  };
  if (options_.training)
    head.probabilities =
        in_slot(static_cast<std::size_t>(options_.batch) * static_cast<std::size_t>(model_.classes) * sizeof(double));
  head.scratch = in_slot(loss_scratch_bytes(head.shape));
  return head;
}

void Network::choose(Trials& trials) {
  for (const Running& each : running_)
    if (each.stage != nullptr)
      of_operator(each.name, [&] {
        trials.begin(each.name, each.layer);
        each.stage->choose(trials);
      });
}

std::vector<SegmentRange> Network::segments() const {
  std::vector<SegmentRange> ranges;
  for (const Running& each : running_)
    if (each.stage != nullptr && !each.stage->segments().empty()) ranges.push_back(each.stage->segments());
  return ranges;
}

void Network::forward(const Pass& pass) {
  for (const Running& each : running_)
    if (each.stage != nullptr) of_operator(each.name, [&] { each.stage->forward(pass); });
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    LossShape shape = head.shape;
    shape.counted = pass.counted;
    cross_entropy(shape, head.logits.value.floats(), pass.labels,
                  head.probabilities ? head.probabilities.as<double>() : nullptr, head.scratch.bytes(),
                  pass.results + i, library_.compute());
  }
}

void Network::backward(const Pass& pass, float* gradients, const Complete& complete) {
  for (const Head& head : heads_)
    cross_entropy_gradient(head.shape, head.probabilities.as<double>(), pass.labels, pass.factor, head.weight,
                           head.logits.gradient.floats(), library_.compute());
  for (auto each = running_.rbegin(); each != running_.rend(); ++each) {
    if (!each->backward) continue;
    of_operator(each->name, [&] {
      if (each->stage != nullptr) {
        each->stage->backward_parameters(pass, gradients);
        if (const SegmentRange range = each->stage->segments(); !range.empty()) complete(range);
        each->stage->backward_data(pass);
      }
      for (const Running::Addition& addition : each->additions)
        accumulate(addition.count, addition.from.floats(), addition.to.floats(), library_.compute());
    });
  }
}

}  // namespace tg::engine::cuda

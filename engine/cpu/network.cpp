#include "engine/cpu/network.h"

#include <algorithm>

#include "engine/cpu/elementwise.h"
#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

dnnl::memory::dims dims_of(int batch, const ImageShape& shape) {
  return {batch, shape.channels, shape.height, shape.width};
}

std::span<float> span_of(const dnnl::memory& memory) { return {floats_of(memory), float_count(memory)}; }

}  // namespace

Network::Network(Device& device, const Model& model, const NetworkOptions& options)
    : device_(device),
      model_(model),
      options_(options),
      plan_(make_plan(model, {options.training, options.sharing})),
      arena_(device) {
  for (const Lifetime& lifetime : plan_.lifetimes) arena_.add(lifetime);  // the plan's numbers are the arena's
  images_ = device.view(row_desc(dims_of(options.batch, model.input)));
  load_images_ = Operation::make_reorder(device, "load of the images", images_, activation(0).value);
  for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) running_.push_back(make_running(stage));
  for (const HeadPlan& head : plan_.heads) logits_.push_back(activation(head.logits));
  placement_ = options.sharing ? place(arena_.needs()) : place_apart(arena_.needs());
}

Activation Network::activation(std::size_t value) {
  const dnnl::memory::desc desc = image_desc(dims_of(options_.batch, plan_.shapes[value]));
  const std::size_t gradient = plan_.gradient_buffers[value];
  return {arena_.view(plan_.value_buffers[value], desc),
          gradient == kNoBuffer ? dnnl::memory() : arena_.view(gradient, desc)};
}

Network::Running Network::make_running(std::size_t stage) {
  const StagePlan& plan = plan_.stages[stage];
  StageContext context{device_,
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
  running.backward = plan_.gradient_buffers[plan.output] != kNoBuffer;
  for (std::size_t input = 0; input < plan.inputs.size(); ++input) {
    Activation taken = activation(plan.inputs[input]);
    if (context.wants(input) && context.adds(input) && !adds_itself(context.op())) {
      const dnnl::memory own =
          plan.view ? context.output.gradient : context.backward_scratch(taken.gradient.get_desc());
      running.additions.push_back({own, taken.gradient});
      taken.gradient = own;
    }
    context.inputs.push_back(std::move(taken));
  }
  if (!plan.view) running.stage = make_stage(context);
  return running;
}

void Network::bind(std::byte* memory) { arena_.bind(placement_, memory); }

void Network::forward(const Pass& pass, const float* images, int count, const Engine::SegmentGate& gate) {
  TG_CHECK(count >= 0 && count <= options_.batch, count, options_.batch);
  if (count < options_.batch) {
    const std::size_t used = static_cast<std::size_t>(count) * model_.input.elements();
    if (short_batch_.size() == 0) {
      short_batch_ = AlignedArray<float>(static_cast<std::size_t>(options_.batch) * model_.input.elements());
    }
    std::copy(images, images + used, short_batch_.begin());
    std::fill(short_batch_.begin() + used, short_batch_.end(), 0.0F);
    images = short_batch_.data();
  }
  point(images_, images);
  load_images_.run();
  for (const Running& each : running_) {
    if (each.stage == nullptr) continue;
    const SegmentRange range = each.stage->segments();
    if (gate && !range.empty()) gate(range.first, range.last);
    each.stage->forward(pass);
  }
}

std::span<const float> Network::logits(std::size_t head) const { return span_of(logits_[head].value); }

std::span<float> Network::logits_gradient(std::size_t head) { return span_of(logits_[head].gradient); }

void Network::backward(float* gradients, const Engine::SegmentSink& sink) {
  for (auto each = running_.rbegin(); each != running_.rend(); ++each) {
    if (!each->backward) continue;
    if (each->stage != nullptr) {
      each->stage->backward_parameters(gradients);
      const SegmentRange range = each->stage->segments();
      if (!range.empty()) sink(range.first, range.last);
      each->stage->backward_data();
    }
    for (const Running::Addition& addition : each->additions) {
      const float* const from = floats_of(addition.from);
      float* const to = floats_of(addition.to);
      team_.share_out(float_count(addition.to), [&](std::size_t first, std::size_t last, std::size_t) {
        accumulate(from + first, to + first, last - first);
      });
    }
  }
}

void Network::read_statistics(float* measured) const {
  for (const Running& each : running_)
    if (each.stage != nullptr) each.stage->read_statistics(measured);
}

}  // namespace tg::engine::cpu

#include "engine/cuda/network.h"

namespace tg::engine::cuda {

Network::Network(Library& library, const Model& model, const NetworkOptions& options)
    : NetworkOf(library, model, options), images_(activation(0).value) {
  make_stages();
  for (const HeadPlan& head : plan_.heads) heads_.push_back(make_head(head));
  place_buffers();
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
      Cuda::of_operator(each.name, [&] {
        trials.begin(each.name, each.stage->layer());
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
  run_forward(pass, {});
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    LossShape shape = head.shape;
    shape.counted = pass.counted;
    shape.class_weights = pass.class_weights;
    cross_entropy(shape, head.logits.value.floats(), pass.labels,
                  head.probabilities ? head.probabilities.as<double>() : nullptr, head.scratch.bytes(),
                  pass.results + i, library_.compute());
  }
}

void Network::backward(const Pass& pass, float* gradients, const Engine::SegmentSink& complete) {
  for (const Head& head : heads_) {
    LossShape shape = head.shape;
    shape.class_weights = pass.class_weights;
    cross_entropy_gradient(shape, head.probabilities.as<double>(), pass.labels, pass.factor, head.weight,
                           head.logits.gradient.floats(), library_.compute());
  }
  run_backward(pass, gradients, complete);
}

}  // namespace tg::engine::cuda

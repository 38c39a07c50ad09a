// A model's stages for one batch size, in order, as they are on every device (stage.h says what `On` is). What runs and
// where its buffers lie is planned when it is made (plan.h, placement.h). Images in and losses out are the device's
// (engine/cpu/network.h, engine/cuda/network.h). The library is shared by the networks of an engine and outlives them,
// and so may their memory: a network runs once bind has given it some. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/graph/placement.h"
#include "engine/network/stage.h"

namespace tg::engine {

struct NetworkOptions {
  int batch = 1;
  bool training = false;
  std::uint64_t seed = 0;
  bool sharing = true;  // buffers share memory; false: each has a place of its own, for comparison
};

template <class On>
class NetworkOf {
 public:
  int batch() const { return options_.batch; }
  // Heads as the plan has them, that of evaluation last.
  const std::vector<HeadPlan>& heads() const { return plan_.heads; }

  // Bytes that bind needs, and those that no plan could do without.
  std::size_t bytes() const { return placement_.bytes; }
  std::size_t least_bytes() const { return most_bytes_at_once(arena_.needs()); }
  void bind(std::byte* memory) { arena_.bind(placement_, memory); }

 protected:
  using Activation = ActivationOf<typename On::View>;
  using Pass = typename On::Pass;

  // A stage as it runs; no stage where nothing does (a view).
  struct Running {
    std::string name;  // the operator's
    std::unique_ptr<typename On::Stage> stage;
    bool backward = false;  // the output's gradient is needed
    // What its backward adds to inputs' gradients: from -> to.
    struct Addition {
      typename On::View from, to;
      std::size_t count;  // floats
    };
    std::vector<Addition> additions;
  };

  // Then make_stages, then place_buffers; the device's own buffers and operations between them.
  NetworkOf(typename On::Library& library, const Model& model, const NetworkOptions& options)
      : library_(library),
        model_(model),
        options_(options),
        plan_(make_plan(model, {options.training, options.sharing, On::kCanonicalImages})),
        arena_(library) {
    for (const Lifetime& lifetime : plan_.lifetimes) arena_.add(lifetime);  // the plan's numbers are the arena's
  }
  void make_stages() {
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) running_.push_back(make_running(stage));
  }
  void place_buffers() { placement_ = options_.sharing ? place(arena_.needs()) : place_apart(arena_.needs()); }

  Activation activation(std::size_t value) {
    const ImageShape& shape = plan_.shapes[value];
    const typename On::Extent extent = On::extent(options_.batch, shape);
    const std::size_t gradient = plan_.gradient_buffers[value];
    return {shape, arena_.view(plan_.value_buffers[value], extent),
            gradient == kNoBuffer ? typename On::View() : arena_.view(gradient, extent)};
  }

  void run_forward(const Pass& pass, const Engine::SegmentGate& gate) {
    for (const Running& each : running_) {
      if (each.stage == nullptr) continue;
      const SegmentRange range = each.stage->segments();
      if (gate && !range.empty()) gate(range.first, range.last);
      On::of_operator(each.name, [&] { each.stage->forward(pass); });
    }
  }

  void run_backward(const Pass& pass, float* gradients, const Engine::SegmentSink& complete) {
    for (auto each = running_.rbegin(); each != running_.rend(); ++each) {
      if (!each->backward) {  // all that it has is frozen
        const SegmentRange range = each->stage != nullptr ? each->stage->segments() : SegmentRange();
        if (!range.empty()) complete(range.first, range.last);
        continue;
      }
      On::of_operator(each->name, [&] {
        if (each->stage != nullptr) {
          each->stage->backward_parameters(pass, gradients);
          if (const SegmentRange range = each->stage->segments(); !range.empty()) complete(range.first, range.last);
          each->stage->backward_data(pass);
        }
        for (const auto& [from, to, count] : each->additions) On::accumulate(library_, count, from, to);
      });
    }
  }

  typename On::Library& library_;
  const Model& model_;
  const NetworkOptions options_;
  const Plan plan_;
  typename On::Arena arena_;
  std::vector<Running> running_;

 private:
  Running make_running(std::size_t stage) {
    const StagePlan& plan = plan_.stages[stage];
    StageContextOf<On> context{library_,
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
        const typename On::View own =
            plan.view ? context.output.gradient : context.backward_scratch(On::extent(options_.batch, taken.shape));
        running.additions.push_back({own, taken.gradient, context.floats(taken.shape)});
        taken.gradient = own;
      }
      context.inputs.push_back(std::move(taken));
    }
    if (!plan.view) running.stage = On::of_operator(running.name, [&] { return make_stage(context); });
    return running;
  }

  Placement placement_;
};

}  // namespace tg::engine

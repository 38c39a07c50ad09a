// What the stages of a network have in common on every device. A stage is an operator with what is fused into it
// (plan.h), for one batch size. A device says in one struct what its stages are made of; `On` is Cpu
// (engine/cpu/stages/stage.h) or Cuda (engine/cuda/stages/stage.h):
//
//   Library, Arena   runs the operations; places the buffers, by Arena::add and Arena::view
//   View, Extent     a buffer as the operations see it, empty where there is none; what a view is asked for by
//   Pass             what a pass is told
//   Stage            derived from StageOf<On>
//   kCanonicalImages images lie in memory in C, H, W order (PlanOptions): every flatten is a view, and no stage
//   extent(batch, shape)                    of a batch of images
//   accumulate(library, count, from, to)    to += from, `count` floats
//   of_operator(name, call)                 makes the call; says how its errors name the operator
//
// and declares make(context, layer) for every operator that a stage is made of: one that is forgotten does not compile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/graph/plan.h"
#include "engine/graph/shapes.h"
#include "engine/model.h"
#include "kernels/base/check.h"

namespace tg::engine {

// gradient: the loss's, with respect to the value; empty where it is not needed.
template <class View>
struct ActivationOf {
  ImageShape shape;
  View value, gradient;
};

// Where and how a stage is made.
template <class On>
struct StageContextOf {
  using View = typename On::View;
  using Extent = typename On::Extent;

  typename On::Library& library;
  typename On::Arena& arena;
  const Model& model;
  const StagePlan& plan;
  int batch;
  bool training;  // forward keeps what backward needs; gradients exist
  std::uint64_t seed;
  std::size_t forward_slot, backward_slot;
  // gradient: what backward_data fills. Where the stage only adds to an input's gradient, that is a buffer of its own,
  // which the network adds afterwards; add and concat do it themselves (adds_itself).
  std::vector<ActivationOf<View>> inputs;
  ActivationOf<View> output;

  const Operator& op() const { return model.operators[plan.op]; }
  const std::string& name() const { return op().name; }  // for errors: "conv1", "max pooling 3"
  // Whether the stage has a backward: below what is trained there is none.
  bool backward() const { return training && static_cast<bool>(output.gradient); }
  bool wants(std::size_t input) const { return training && plan.contributions[input] != Contribution::kNone; }
  bool adds(std::size_t input) const { return plan.contributions[input] == Contribution::kAdds; }
  std::size_t floats(const ImageShape& shape) const { return static_cast<std::size_t>(batch) * shape.elements(); }
  // Memory for forward or backward alone, and memory from forward to backward.
  View forward_scratch(const Extent& extent) const { return view(forward_slot, forward_slot, extent); }
  View backward_scratch(const Extent& extent) const { return view(backward_slot, backward_slot, extent); }
  View kept(const Extent& extent) const { return view(forward_slot, training ? backward_slot : forward_slot, extent); }

 private:
  View view(std::size_t first, std::size_t last, const Extent& extent) const {
    return arena.view(arena.add({first, last}), extent);
  }
};

// Segment indices [first, last) whose gradients a stage computes.
struct SegmentRange {
  std::size_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

template <class On>
class StageOf {
 public:
  using Pass = typename On::Pass;

  explicit StageOf(const StageContextOf<On>& context) {
    const std::vector<std::size_t> segments = segments_of(context.op());
    if (!segments.empty()) segments_ = {segments.front(), segments.back() + 1};
  }
  virtual ~StageOf() = default;
  StageOf(const StageOf&) = delete;
  StageOf& operator=(const StageOf&) = delete;

  SegmentRange segments() const { return segments_; }

  virtual void forward(const Pass& pass) = 0;
  // Backward is told the same as its forward.
  // First pass of a stage's backward: the output's gradient is complete; fills the stage's segments.
  virtual void backward_parameters(const Pass& /*pass*/, float* /*gradients*/) {}
  // Second: fills the inputs' gradients, where they are wanted.
  virtual void backward_data(const Pass& pass) = 0;

 private:
  SegmentRange segments_;
};

// Add and concat add to their inputs' gradients themselves.
inline bool adds_itself(const Operator& one) {
  return std::holds_alternative<Add>(one.attributes) || std::holds_alternative<Concat>(one.attributes);
}

template <class On>
std::unique_ptr<typename On::Stage> make_stage(const StageContextOf<On>& context) {
  return std::visit(
      [&](const auto& layer) -> std::unique_ptr<typename On::Stage> {
        using Layer = std::decay_t<decltype(layer)>;
        if constexpr (std::is_same_v<Layer, CrossEntropy> || (On::kCanonicalImages && std::is_same_v<Layer, Flatten>))
          TG_CHECK(false, context.name());
        else
          return make(context, layer);
      },
      context.op().attributes);
}

}  // namespace tg::engine

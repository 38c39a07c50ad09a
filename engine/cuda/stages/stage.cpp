#include "engine/cuda/stages/stage.h"

#include "engine/graph/shapes.h"
#include "kernels/base/check.h"

namespace tg::engine::cuda {

Planes StageContext::planes(const ImageShape& shape) const {
  return {static_cast<std::size_t>(batch), static_cast<std::size_t>(shape.channels),
          static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width)};
}

View StageContext::forward_scratch(std::size_t bytes) const {
  return arena.view(arena.add({forward_slot, forward_slot}), bytes);
}

View StageContext::backward_scratch(std::size_t bytes) const {
  return arena.view(arena.add({backward_slot, backward_slot}), bytes);
}

View StageContext::kept(std::size_t bytes) const {
  return arena.view(arena.add({forward_slot, training ? backward_slot : forward_slot}), bytes);
}

Stage::Stage(const StageContext& context) {
  const std::vector<std::size_t> segments = segments_of(context.op());
  if (!segments.empty()) segments_ = {segments.front(), segments.back() + 1};
}

std::unique_ptr<Stage> make_stage(const StageContext& context) {
  return std::visit(
      [&](const auto& layer) -> std::unique_ptr<Stage> {
        using Layer = std::decay_t<decltype(layer)>;
        if constexpr (std::is_same_v<Layer, CrossEntropy> || std::is_same_v<Layer, Flatten>)
          TG_CHECK(false, context.name());
        else
          return make(context, layer);
      },
      context.op().attributes);
}

bool adds_itself(const Operator& one) {
  return std::holds_alternative<Add>(one.attributes) || std::holds_alternative<Concat>(one.attributes);
}

}  // namespace tg::engine::cuda

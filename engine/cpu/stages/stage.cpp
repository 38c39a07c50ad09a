#include "engine/cpu/stages/stage.h"

#include <algorithm>
#include <stdexcept>

#include "engine/graph/shapes.h"
#include "kernels/base/check.h"

namespace tg::engine::cpu {

using dnnl::memory;

bool StageContext::wants_any() const {
  for (std::size_t input = 0; input < inputs.size(); ++input)
    if (wants(input)) return true;
  return false;
}

memory StageContext::forward_scratch(const memory::desc& desc) const {
  return arena.view(arena.add({forward_slot, forward_slot}), desc);
}

memory StageContext::backward_scratch(const memory::desc& desc) const {
  return arena.view(arena.add({backward_slot, backward_slot}), desc);
}

memory StageContext::kept(const memory::desc& desc) const {
  return arena.view(arena.add({forward_slot, training ? backward_slot : forward_slot}), desc);
}

Stage::Stage(const StageContext& context) {
  const std::vector<std::size_t> segments = segments_of(context.op());
  if (!segments.empty()) segments_ = {segments.front(), segments.back() + 1};
}

std::unique_ptr<Stage> make_stage(const StageContext& context) {
  return std::visit(
      [&](const auto& layer) -> std::unique_ptr<Stage> {
        if constexpr (std::is_same_v<std::decay_t<decltype(layer)>, CrossEntropy>)
          TG_CHECK(false, context.name());
        else
          return make(context, layer);
      },
      context.op().attributes);
}

bool adds_itself(const Operator& one) {
  return std::holds_alternative<Add>(one.attributes) || std::holds_alternative<Concat>(one.attributes);
}

memory::desc image_desc(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::nhwc}; }

memory::desc row_desc(const memory::dims& dims) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a, memory::format_tag::ab, memory::format_tag::abc,
                                          memory::format_tag::abcd, memory::format_tag::abcde};
  return {dims, memory::data_type::f32, kTags[dims.size() - 1]};
}

float* floats_of(const memory& memory) { return static_cast<float*>(memory.get_data_handle()); }

std::size_t float_count(const memory& memory) { return memory.get_desc().get_size() / sizeof(float); }

Operation make_relu_mask(const StageContext& context, const Activation& of, const memory& to) {
  const memory::desc desc = of.value.get_desc();
  const auto description = checked("choice of relu backward", [&] {
    const dnnl::eltwise_forward::primitive_desc hint(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu_use_dst_for_bwd,
                                    desc, 0.0F, 0.0F),
        attributes(), context.device.engine());
    return dnnl::eltwise_backward::primitive_desc(
        dnnl::eltwise_backward::desc(dnnl::algorithm::eltwise_relu_use_dst_for_bwd, desc, desc, 0.0F, 0.0F),
        attributes(), context.device.engine(), hint);
  });
  return Operation::make<dnnl::eltwise_backward>(
      context.device, context.name() + " relu backward", description,
      {{DNNL_ARG_DST, of.value}, {DNNL_ARG_DIFF_DST, of.gradient}, {DNNL_ARG_DIFF_SRC, to}});
}

SegmentView::SegmentView(const StageContext& context, const Segment& segment)
    : SegmentView(context, segment, segment.shape) {}

SegmentView::SegmentView(const StageContext& context, const Segment& segment, const memory::dims& dims)
    : memory_(context.device.view(row_desc(dims))), offset_(segment.offset) {}

}  // namespace tg::engine::cpu

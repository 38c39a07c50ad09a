#include "engine/cpu/stages/stage.h"

#include "engine/cpu/elementwise.h"
#include "engine/cpu/team.h"

namespace tg::engine::cpu {

using dnnl::memory;

memory::desc Cpu::extent(int batch, const ImageShape& shape) {
  return image_desc({batch, shape.channels, shape.height, shape.width});
}

void Cpu::accumulate(const Library& /*library*/, std::size_t count, const View& from, const View& to) {
  const float* const source = floats_of(from);
  float* const target = floats_of(to);
  Team().share_out(count, [&](std::size_t first, std::size_t last, std::size_t) {
    cpu::accumulate(source + first, target + first, last - first);
  });
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
        attributes(), context.library.engine());
    return dnnl::eltwise_backward::primitive_desc(
        dnnl::eltwise_backward::desc(dnnl::algorithm::eltwise_relu_use_dst_for_bwd, desc, desc, 0.0F, 0.0F),
        attributes(), context.library.engine(), hint);
  });
  return Operation::make<dnnl::eltwise_backward>(
      context.library, context.name() + " relu backward", description,
      {{DNNL_ARG_DST, of.value}, {DNNL_ARG_DIFF_DST, of.gradient}, {DNNL_ARG_DIFF_SRC, to}});
}

SegmentView::SegmentView(const StageContext& context, const Segment& segment)
    : SegmentView(context, segment, segment.shape) {}

SegmentView::SegmentView(const StageContext& context, const Segment& segment, const memory::dims& dims)
    : memory_(context.library.view(row_desc(dims))), offset_(segment.offset) {}

}  // namespace tg::engine::cpu

#include "tests/engine/cuda/cpu_stage.h"

#include "engine/cpu/stages/stage.h"
#include "engine/graph/shapes.h"

namespace tg::engine::cuda {
namespace {

// to_rows: from planes to rows of channels; else back.
void reorder(int batch, const ImageShape& shape, const float* from, float* to, bool to_rows) {
  const auto channels = static_cast<std::size_t>(shape.channels), pixels = shape.elements() / channels;
  for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < pixels; ++p) {
        const std::size_t plane = (n * channels + c) * pixels + p, row = (n * pixels + p) * channels + c;
        to[to_rows ? row : plane] = from[to_rows ? plane : row];
      }
}

}  // namespace

ImageShape output_of(const Attributes& attributes, const ImageShape& input) {
  return infer_shape({"operator", attributes, {0}}, std::span(&input, 1)).value();
}

CpuResult run_on_cpu(const Attributes& attributes, const ImageShape& input, int batch, const Values& x,
                     const Values& dy, bool mask) {
  const ImageShape output = output_of(attributes, input);
  cpu::Library library;
  cpu::Arena arena(library);
  Model model;
  model.operators.push_back({"operator", attributes, {0}});
  const StagePlan plan{.inputs = {0}, .output = 1, .mask_taken = mask, .contributions = {Contribution::kWrites}};
  const auto images = [&](const ImageShape& shape) {
    const auto buffer = [&] { return arena.view(arena.add({0, 3}), cpu::Cpu::extent(batch, shape)); };
    return cpu::Activation{shape, buffer(), buffer()};
  };
  const cpu::Activation from = images(input), to = images(output);
  const auto stage = make_stage<cpu::Cpu>({library, arena, model, plan, batch, true, 0, 1, 2, {from}, to});
  const Placement placement = place_apart(arena.needs());
  AlignedArray<std::byte> memory(placement.bytes);
  arena.bind(placement, memory.data());
  library.allocate_scratchpad();

  reorder(batch, input, x.data(), cpu::floats_of(from.value), true);
  reorder(batch, output, dy.data(), cpu::floats_of(to.gradient), true);
  stage->forward({});
  stage->backward_data({});
  CpuResult result{Values(dy.size()), Values(x.size())};
  reorder(batch, output, cpu::floats_of(to.value), result.y.data(), false);
  reorder(batch, input, cpu::floats_of(from.gradient), result.dx.data(), false);
  return result;
}

}  // namespace tg::engine::cuda

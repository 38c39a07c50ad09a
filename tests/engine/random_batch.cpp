#include "tests/engine/random_batch.h"

#include <random>

namespace tg::engine {

Batch random_batch(const Model& model, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> pixel(-1.0F, 1.0F);
  std::uniform_int_distribution<std::int32_t> label(0, model.classes - 1);
  Batch batch;
  batch.count = count;
  batch.images = AlignedArray<float>(static_cast<std::size_t>(count) * model.input.elements());
  for (float& each : batch.images) each = pixel(random);
  for (int i = 0; i < count; ++i) batch.labels.push_back(label(random));
  return batch;
}

AlignedArray<float> random_parameters(const Model& model, float bound, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> value(-bound, bound);
  AlignedArray<float> parameters = flat_array(model);
  for (const Segment& segment : model.segments.segments()) {
    for (std::size_t i = 0; i < segment.element_count; ++i) parameters[segment.offset + i] = value(random);
  }
  return parameters;
}

}  // namespace tg::engine

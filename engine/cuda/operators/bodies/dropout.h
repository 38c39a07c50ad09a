// Dropout's mask as drawn by graph/dropout.h, bit for bit. A thread has the eight features of one block of Philox.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/bodies/pack.h"
#include "engine/cuda/operators/shapes.h"
#include "engine/graph/dropout.h"
#include "kernels/constants.h"

namespace tg::engine::cuda::bodies {

// The words of kernels/scalar/philox.cpp.
struct PhiloxWords {
  std::uint32_t at[4];
};
TG_HOST_DEVICE inline PhiloxWords philox(PhiloxWords counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kernels::kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kernels::kPhiloxMultiplier0} * counter.at[0];
    const std::uint64_t product1 = std::uint64_t{kernels::kPhiloxMultiplier1} * counter.at[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.at[1] ^ key0, static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.at[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kernels::kPhiloxWeyl0;
    key1 += kernels::kPhiloxWeyl1;
  }
  return counter;
}

// kWidth: width of the packs in which features are moved.
template <int kWidth>
struct Dropout {
  static constexpr int kBlock = 8;  // features of a block of Philox

  Dropout(const DropoutShape& of, const std::uint64_t* first, const float* from, float* to)
      : shape(of),
        blocks((of.features + kBlock - 1) / kBlock),
        by_blocks(blocks),
        first_position(first),
        x(from),
        y(to) {}

  DropoutShape shape;
  std::uint64_t blocks;  // per row
  Divider by_blocks;
  const std::uint64_t* first_position;
  const float* x;
  float* y;

  // No pack reaches from one row into the next.
  bool allows_wide() const { return bodies::allows_wide(x, y) && shape.features % kWide == 0; }
  std::uint64_t threads() const { return shape.samples * blocks; }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts row = by_blocks(thread);
    const std::uint64_t position = *first_position + row.quotient;
    const PhiloxWords words =
        philox({{row.remainder, static_cast<std::uint32_t>(position), DropoutMask::kDomain | shape.index_of_operator,
                 static_cast<std::uint32_t>(position >> 32)}},
               shape.seed);
    const std::uint64_t first = std::uint64_t{row.remainder} * kBlock, at = row.quotient * shape.features + first;
    for (int i = 0; i < kBlock; i += kWidth) {
      if (first + static_cast<std::uint64_t>(i) >= shape.features) return;
      Pack<float, kWidth> values = load<kWidth>(x + at + i);
      for (int e = 0; e < kWidth; ++e) {
        const std::uint32_t drawn = (words.at[(i + e) / 2] >> ((i + e) % 2 * 16)) & 0xFFFF;
        values.at[e] = drawn < shape.threshold ? 0.0F : values.at[e] * shape.scale;
      }
      store(y + at + i, values);
    }
  }
};

}  // namespace tg::engine::cuda::bodies

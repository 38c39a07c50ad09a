// Dropout on the device's grid: the bits of graph/dropout.h.
#include "engine/cuda/operators/bodies/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {
namespace {

struct Mask {
  double probability;
  std::uint64_t seed, position;
  std::uint32_t index_of_operator;
};

// graph/dropout.h's threshold and scale.
DropoutShape shape_of(const Mask& mask, std::size_t samples, std::size_t features) {
  const auto threshold = static_cast<std::uint32_t>(std::lround(mask.probability * 65536));
  return {samples,  features, threshold, mask.index_of_operator, static_cast<float>(65536.0 / (65536 - threshold)),
          mask.seed};
}

Values expected_of(const Mask& mask, std::size_t samples, std::size_t features, const Values& x) {
  Values y(x.size());
  const DropoutMask reference(mask.probability, mask.seed, mask.index_of_operator);
  for (std::size_t sample = 0; sample < samples; ++sample)
    reference.apply(mask.position + sample, std::span(x).subspan(sample * features, features),
                    std::span(y).subspan(sample * features, features));
  return y;
}

TEST(DropoutOnDevice, HasTheBitsOfTheMask) {
  const Mask masks[] = {{0.5, 1, 7, 3},
                        {0.2, 0xFEDCBA9876543210u, (std::uint64_t{1} << 32) - 2, 11},
                        {0.0, 3, 0, 0},
                        {0.7, 9, std::numeric_limits<std::uint64_t>::max() - 10, (1u << 28) - 1}};
  for (const Mask& mask : masks)
    for (const std::size_t features : {1u, 4u, 7u, 8u, 9u, 12u, 64u, 1000u, 4096u}) {
      const std::size_t samples = 5;
      const Values x = random_values(samples * features, features);
      const Values expected = expected_of(mask, samples, features, x);
      const DropoutShape shape = shape_of(mask, samples, features);
      Values y(x.size());
      run(bodies::Dropout<1>(shape, &mask.position, x.data(), y.data()));
      EXPECT_EQ(y, expected) << features;
      const bodies::Dropout<bodies::kWide> wide(shape, &mask.position, x.data(), y.data());
      EXPECT_EQ(wide.allows_wide(), features % 4 == 0);
      if (wide.allows_wide()) {
        y.assign(y.size(), -1);
        run(wide);
        EXPECT_EQ(y, expected) << features;
      }
      y = x;
      run(bodies::Dropout<1>(shape, &mask.position, y.data(), y.data()));
      EXPECT_EQ(y, expected) << features << " in place";
    }
}

}  // namespace
}  // namespace tg::engine::cuda

#include "engine/cuda/operators/bodies/padding.h"

#include <gtest/gtest.h>

#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {
namespace {

TEST(PaddingOnDevice, PutsZerosAroundAndTakesThemAway) {
  for (const Padding padding : {Padding{}, Padding{1, 2, 3, 4}, Padding{0, 0, 1, 1}, Padding{5, 0, 0, 0}})
    for (const Sides inner : {Sides{1, 1}, Sides{5, 3}, Sides{12, 17}}) {
      constexpr int kPlanes = 7;
      const int height = inner.height + padding.top + padding.bottom,
                width = inner.width + padding.left + padding.right;
      const Values x = random_values(static_cast<std::size_t>(kPlanes) * inner.height * inner.width, 10);
      Values expected(static_cast<std::size_t>(kPlanes) * height * width), padded(expected.size(), -1);
      for (int plane = 0; plane < kPlanes; ++plane)
        for (int r = 0; r < inner.height; ++r)
          for (int c = 0; c < inner.width; ++c)
            expected[(plane * height + r + padding.top) * width + c + padding.left] =
                x[(plane * inner.height + r) * inner.width + c];
      run(bodies::Pad(kPlanes, inner, padding, x.data(), padded.data()));
      EXPECT_EQ(padded, expected);
      Values back(x.size());
      run(bodies::Unpad(kPlanes, inner, padding, padded.data(), back.data()));
      EXPECT_EQ(back, x);
    }
}

}  // namespace
}  // namespace tg::engine::cuda

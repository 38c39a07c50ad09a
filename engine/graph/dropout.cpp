#include "engine/graph/dropout.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

constexpr std::uint32_t kWhole = 1u << 16;
constexpr std::size_t kBlock = 8;  // features of a Philox block

}  // namespace

DropoutMask::DropoutMask(double probability, std::uint64_t seed, std::size_t index_of_operator)
    : threshold_(std::min(static_cast<std::uint32_t>(std::lround(probability * kWhole)), kWhole - 1)),
      scale_(static_cast<float>(static_cast<double>(kWhole) / (kWhole - threshold_))),
      seed_(seed),
      operator_(static_cast<std::uint32_t>(index_of_operator)) {
  TG_CHECK(index_of_operator < (1u << 28), index_of_operator);
}

void DropoutMask::apply(std::uint64_t position, std::span<const float> x, std::span<float> y) const {
  std::uint32_t counter[4] = {0, static_cast<std::uint32_t>(position), kDomain | operator_,
                              static_cast<std::uint32_t>(position >> 32)};
  for (std::size_t first = 0; first < x.size(); first += kBlock, ++counter[0]) {
    std::uint32_t words[4];
    kernels::philox4x32(counter, seed_, words);
    const std::size_t count = std::min(kBlock, x.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t drawn = (words[i / 2] >> (i % 2 * 16)) & (kWhole - 1);
      y[first + i] = drawn < threshold_ ? 0.0F : x[first + i] * scale_;
    }
  }
}

}  // namespace tg::engine

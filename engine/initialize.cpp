#include <cstring>

#include "engine/model.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

// Word 1 of the counters drawn here; ternarize puts the rank there (below 128), so no counter serves both.
constexpr std::uint32_t kInitializationDomain = 0x494e4954;
constexpr double kCut = 2.0;  // deviations

// e^-y for y in [0, kCut^2/2] without libm: Taylor at y/4, |rest| < 0.5^13/13! = 2e-14, then to the fourth power.
double exp_minus(double y) {
  constexpr int kTerms = 12;
  const double x = -y * 0.25;
  double sum = 1.0;
  for (int k = kTerms; k >= 1; --k) sum = 1.0 + sum * x / k;
  const double square = sum * sum;
  return square * square;
}

// Rejection from the uniform on [-kCut, kCut] (accepts 60 %): exact up to the 2^-32 grid of the draws. Each element has
// its own counters, so its value depends on nothing but seed, segment and index.
double truncated_normal(std::uint64_t seed, std::uint32_t segment, std::uint32_t element) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const std::uint32_t counter[4] = {element, kInitializationDomain, segment, attempt};
    std::uint32_t words[4];
    kernels::philox4x32(counter, seed, words);
    for (int pair = 0; pair < 4; pair += 2) {
      const double x = ((words[pair] + 0.5) * 0x1p-32 * 2.0 - 1.0) * kCut;
      const double u = (words[pair + 1] + 0.5) * 0x1p-32;
      if (u < exp_minus(x * x * 0.5)) return x;
    }
  }
}

}  // namespace

void initialize(const SegmentTable& segments, std::uint64_t seed, float* parameters) {
  std::memset(parameters, 0, segments.padded_count() * sizeof(float));
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    float* values = parameters + segment.offset;
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      const double value = segment.initial_deviation > 0
                               ? segment.initial_deviation * truncated_normal(seed, static_cast<std::uint32_t>(s),
                                                                              static_cast<std::uint32_t>(i))
                               : segment.initial_value;
      values[i] = static_cast<float>(value);
    }
  }
}

}  // namespace tg::engine

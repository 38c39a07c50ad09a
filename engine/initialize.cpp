#include "engine/model.h"
#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

// Word 1 of the counters drawn here; ternarize puts the seat there (below 128), so no counter serves both.
constexpr std::uint32_t kInitializationDomain = 0x494e4954;
constexpr double kCut = 2.0;  // deviations

// Computes e^-y for y in [0, kCut^2/2] without libm: Taylor at y/4, |rest| < 0.5^13/13! = 2e-14, then the fourth power.
double exp_minus(double y) {
  constexpr int kTerms = 12;
  const double x = -y * 0.25;
  double sum = 1.0;
  for (int k = kTerms; k >= 1; --k) sum = 1.0 + sum * x / k;
  const double square = sum * sum;
  return square * square;
}

// Whether u < e^-y. Its series is cut once below it and once above, which decides nine of ten draws; the margin keeps
// them clear of any rounding, so that the result is exp_minus's own.
bool below_exp_minus(double u, double y) {
  constexpr double kMargin = 1e-9;
  const double square = y * y;
  const double below = 1 - y + square * 0.5 - square * y * (1.0 / 6), above = below + square * square * (1.0 / 24);
  if (u < below - kMargin) return true;
  if (u > above + kMargin) return false;
  return u < exp_minus(y);
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
      if (below_exp_minus(u, x * x * 0.5)) return x;
    }
  }
}

// Uniform between -1 and 1. Four neighbours share a block, which is kept, because large models use these.
class UniformDraws {
 public:
  UniformDraws(std::uint64_t seed, std::uint32_t segment)
      : seed_(seed), counter_{0, kInitializationDomain, segment, 0} {
    kernels::philox4x32(counter_, seed_, words_);
  }
  double at(std::uint32_t element) {
    if (counter_[0] != element / 4) {
      counter_[0] = element / 4;
      kernels::philox4x32(counter_, seed_, words_);
    }
    return (words_[element % 4] + 0.5) * 0x1p-32 * 2.0 - 1.0;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t counter_[4];
  std::uint32_t words_[4];
};

}  // namespace

void initialize(const Segment& segment, std::size_t index, std::uint64_t seed, std::size_t first,
                std::span<float> values) {
  const auto number = static_cast<std::uint32_t>(index);
  UniformDraws uniform(seed, number);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = static_cast<std::uint32_t>(first + i);
    double value = segment.initial_value;
    if (element >= segment.element_count)
      value = 0;
    else if (segment.initial_deviation > 0)
      value = segment.initial_deviation * truncated_normal(seed, number, element);
    else if (segment.initial_bound > 0)
      value = segment.initial_bound * uniform.at(element);
    values[i] = static_cast<float>(value);
  }
}

void initialize(const SegmentTable& segments, std::uint64_t seed, float* parameters) {
  for (std::size_t s = 0; s < segments.size(); ++s)
    initialize(segments[s], s, seed, 0, {parameters + segments[s].offset, segments[s].padded_count()});
}

void follow_statistics(const Model& model, std::span<const float> measured, std::span<float> running) {
  TG_CHECK(measured.size() == model.statistics.padded_count() && running.size() == measured.size(), measured.size(),
           running.size());
  for (const Operator& one : model.operators) {
    const auto* normalization = std::get_if<BatchNormalization>(&one.attributes);
    if (normalization == nullptr) continue;
    for (const std::size_t index : {normalization->mean, normalization->variance}) {
      const Segment& segment = model.statistics[index];
      for (std::size_t i = segment.offset; i < segment.offset + segment.element_count; ++i)
        running[i] += normalization->momentum * (measured[i] - running[i]);
    }
  }
}

}  // namespace tg::engine

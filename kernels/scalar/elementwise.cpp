#include <cstring>

#include "kernels/require.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

void accumulate_floats(std::span<const std::byte> addend, std::span<float> total) {
  require_same_size(total.size_bytes(), addend.size());
  for (std::size_t i = 0; i < total.size(); ++i) {
    float value;
    std::memcpy(&value, addend.data() + i * sizeof value, sizeof value);
    total[i] = total[i] + value;
  }
}

void add_scaled(std::span<const float> parameters, float factor, std::span<float> gradient) {
  require_same_size(gradient.size(), parameters.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = gradient[i] + factor * parameters[i];
}

void accumulate_scaled(ConstPlanes codes, float scale, std::span<float> total) {
  require_same_size(total.size(), codes.nonzero.size() * kWordBits);
  require_same_size(total.size(), codes.negative.size() * kWordBits);
  for (std::size_t i = 0; i < total.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i % kWordBits;
    if ((codes.nonzero[i / kWordBits] & bit) == 0) continue;
    total[i] = total[i] + ((codes.negative[i / kWordBits] & bit) != 0 ? -scale : scale);
  }
}

void average(std::span<const float> parameters, float rate, std::span<float> average) {
  require_same_size(average.size(), parameters.size());
  for (std::size_t i = 0; i < average.size(); ++i) {
    average[i] = canonical(average[i] + rate * (parameters[i] - average[i]));
  }
}

}  // namespace tg::kernels::scalar

#include "kernels/x86/elementwise.h"

#include "kernels/avx2/functions.h"
#include "kernels/avx2/vector.h"

namespace tg::kernels::avx2 {

void accumulate_floats(std::span<const std::byte> addend, std::span<float> total) {
  accumulate_floats_x86<Floats>(addend, total);
}

void add_scaled(std::span<const float> parameters, float factor, std::span<float> gradient) {
  add_scaled_x86<Floats>(parameters, factor, gradient);
}

void accumulate_scaled(ConstPlanes codes, float scale, std::span<float> total) {
  accumulate_scaled_x86<Floats>(codes, scale, total);
}

void average(std::span<const float> parameters, float rate, std::span<float> average) {
  average_x86<Floats>(parameters, rate, average);
}

}  // namespace tg::kernels::avx2

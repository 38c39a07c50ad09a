#include "kernels/x86/halves.h"

#include "kernels/avx2/functions.h"
#include "kernels/avx2/vector.h"

namespace tg::kernels::avx2 {

void encode_halves(std::span<const float> values, std::span<std::byte> payload) {
  encode_halves_x86<Floats>(values, payload);
}

void accumulate_halves(std::span<const std::byte> addend, std::span<float> total) {
  accumulate_halves_x86<Floats>(addend, total);
}

void decode_halves(std::span<const std::byte> payload, std::span<float> values) {
  decode_halves_x86<Floats>(payload, values);
}

}  // namespace tg::kernels::avx2

#include "kernels/x86/apply.h"

#include "kernels/avx2/functions.h"
#include "kernels/avx2/vector.h"
#include "kernels/x86/receive.h"

namespace tg::kernels::avx2 {

void apply_sums(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to) {
  apply_x86<Floats>(update, sums.data(), sums.size(), from, to);
}

void apply_floats(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to) {
  apply_x86<Floats>(update, sums.data(), sums.size(), from, to);
}

bool apply_codes(const Update& update, const Received& received, ConstStateSpan from, StateSpan to) {
  return apply_codes_x86<Floats, Sums>(update, received, from, to);
}

}  // namespace tg::kernels::avx2

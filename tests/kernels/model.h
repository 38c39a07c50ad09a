// A deliberately dumb ternarizer, element by element from the contract's formulas, with switches for the mistakes that
// the tests must be able to see. With no mistake it equals every variant bit for bit (ternarize_test.cpp).
#pragma once

#include "kernels/kernels.h"

namespace tg::kernels::test {

enum class Mistake { kNone, kNoDither, kNoClamp, kDitherWithoutSeat };

// T of one element for dither d; not bounded by 255 under kNoClamp.
std::uint32_t model_threshold(float g, const Scale& scale, float dither, Mistake mistake);
float model_dither(const DrawKey& key, std::size_t i, Mistake mistake);
std::uint32_t model_byte(const DrawKey& key, std::size_t i);  // r8(i)

void model_ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                     Planes codes, Mistake mistake);

}  // namespace tg::kernels::test

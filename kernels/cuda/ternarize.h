// Eq. (1), (3) (host_kernels.h), by warps. A lane has 16 consecutive elements, which need one draw of stream 0, and so
// a warp has a group of kBlock, whose 16 dithers are four draws of stream 1. A warp takes eight groups, so that their
// dithers are one draw a lane:
//   1. draw_dithers: lane l draws part l % 4 of group l / 4;
//   2. for each group every lane gathers the 16 dithers from the four lanes that dither_lane names (on the device by
//      shuffles);
//   3. ternarize_sixteen: 16 bits of each plane.
// Bytes moved: 4 read and 1/4 written for each element. A warp's lanes read pieces of 64 bytes, one after the other:
// the first level cache joins them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/vector.h"

namespace tg::kernels::cuda {

inline constexpr std::size_t kDraw = 16;  // elements of a lane, and dithers of a group
inline constexpr unsigned kGroupsPerWarp = 8;
static_assert(kDraw * kWarp == kBlock && kGroupsPerWarp * 4 == kWarp);

// With clip and q both 0 every threshold is that of the dither alone: 0.
struct Rule {
  float clip = 0, q = 0;
};
inline Rule rule_of(const Scale& scale) {
  return scale.scaler >= kSmallestScaler ? Rule{scale.clip, 255.0F / scale.scaler} : Rule{};
}

struct TernarizeArguments {
  const float* gradient;
  std::size_t groups;       // groups of kBlock elements
  std::size_t first_group;  // the first group's number in the segment
  DrawKey key;
  Rule rule;
  std::uint16_t *nonzero, *negative;  // 16 elements in each, little-endian like the planes' words
};

inline unsigned ternarize_blocks(std::size_t groups) {
  return blocks_for((groups + kGroupsPerWarp - 1) / kGroupsPerWarp * kWarp);
}

TG_HOST_DEVICE inline std::size_t group_of(std::size_t warp, unsigned j) { return warp * kGroupsPerWarp + j; }

TG_HOST_DEVICE inline Floats4 draw_dithers(const TernarizeArguments& a, std::size_t warp, unsigned lane) {
  const std::size_t index = 4 * (a.first_group + group_of(warp, 0)) + lane;
  const Words4 words = draw(a.key, kDitherStream, static_cast<std::uint32_t>(index));
  Floats4 dithers;
  TG_UNROLL
  for (int w = 0; w < 4; ++w) dithers.at[w] = static_cast<float>(words.at[w] >> 8) * 0x1p-24F;
  return dithers;
}

// The lane that has dither e of the warp's group j, as word e % 4 of its draw.
TG_HOST_DEVICE inline unsigned dither_lane(unsigned j, unsigned e) { return 4 * j + e / 4; }

// byte < T where T = min(trunc(x), 255) and x >= 0: byte + 1 <= min(x, 255). 0x4B0000xx is 2^23 + xx as a float.
TG_HOST_DEVICE inline bool is_nonzero(float g, std::uint32_t byte, const Rule& rule, float dither) {
  const float magnitude = fabsf(g);
  const float scaled = fmaf(magnitude < rule.clip ? magnitude : rule.clip, rule.q, dither);
  return float_of(0x4B000000U | byte) - 8388607.0F <= (scaled < 255.0F ? scaled : 255.0F);
}

TG_HOST_DEVICE inline void ternarize_sixteen(const TernarizeArguments& a, std::size_t group, unsigned lane,
                                             const float (&dithers)[kDraw]) {
  const std::size_t piece = group * kWarp + lane;  // number of a piece of 16 elements
  Floats4 g[4];
  TG_UNROLL
  for (int v = 0; v < 4; ++v) g[v] = load(a.gradient + piece * kDraw + v * kVector);
  const Words4 words = draw(a.key, 0, static_cast<std::uint32_t>(a.first_group * kWarp + piece));
  std::uint32_t nonzero = 0, signs = 0;
  TG_UNROLL
  for (unsigned e = 0; e < kDraw; ++e) {
    const float value = g[e / 4].at[e % 4];
    const std::uint32_t byte = words.at[e / 4] >> (e % 4 * 8) & 0xFFU;
    nonzero |= (is_nonzero(value, byte, a.rule, dithers[e]) ? 1U : 0U) << e;
    signs |= bits_of(value) >> 31 << e;
  }
  a.nonzero[piece] = static_cast<std::uint16_t>(nonzero);
  a.negative[piece] = static_cast<std::uint16_t>(nonzero & signs);
}

}  // namespace tg::kernels::cuda

// The update rules (types.h), four elements a thread. Bytes moved for each element: 8 for every array of the state, and
// the source's: 1 of sums, 4 of floats, 1/4 of every member's planes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"
#include "kernels/types.h"

namespace tg::kernels::cuda {

// A range of the state on the device; unused slots are null.
struct StateAt {
  float *parameters, *slot0, *slot1;
};
struct ConstStateAt {
  const float *parameters, *slot0, *slot1;
};

// What the gradient comes from: four(first) are elements [first, first + 4) as floats.
struct SumsSource {
  const std::int8_t* sums;
  TG_HOST_DEVICE Floats4 four(std::size_t first) const {
    std::uint32_t packed;
    __builtin_memcpy(&packed, __builtin_assume_aligned(sums + first, sizeof packed), sizeof packed);
    Floats4 values;
    TG_UNROLL
    for (int e = 0; e < 4; ++e) values.at[e] = static_cast<float>(static_cast<std::int8_t>(packed >> 8 * e));
    return values;
  }
};
struct FloatsSource {
  const float* sums;
  TG_HOST_DEVICE Floats4 four(std::size_t first) const { return load(sums + first); }
};
// Member m's planes are bytes [2m, 2m + 1) x plane_bytes (nonzero) and [2m + 1, 2m + 2) x plane_bytes (negative).
struct PlanesSource {
  const std::uint8_t* planes;
  std::size_t plane_bytes;
  unsigned members;  // at most kMaxMembers: no counter overflows its byte
  TG_HOST_DEVICE Floats4 four(std::size_t first) const {
    const unsigned shift = first % 8;
    const std::uint8_t* nonzero = planes + first / 8;
    std::uint32_t all = 0, negative = 0;  // four counters of a byte each
    TG_UNROLL_BY(4)
    for (unsigned m = 0; m < members; ++m, nonzero += 2 * plane_bytes) {
      all += spread(nonzero[0] >> shift);
      negative += spread(nonzero[plane_bytes] >> shift);
    }
    Floats4 values;
    TG_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int sum = static_cast<int>(all >> 8 * e & 0xFFU) - 2 * static_cast<int>(negative >> 8 * e & 0xFFU);
      values.at[e] = static_cast<float>(sum);
    }
    return values;
  }
  // Bit e of the lowest four into byte e: 0x00204081 puts copies 7 bits apart, bit e of copy e at bit 8e.
  TG_HOST_DEVICE static std::uint32_t spread(std::uint32_t bits) { return (bits & 0xFU) * 0x00204081U & 0x01010101U; }
};

// Elements [4n, 4n + 4), if there are so many.
template <OptimizerKind kKind, class Source>
TG_HOST_DEVICE inline void apply_four(const Update& u, const Source& source, std::size_t elements,
                                      const ConstStateAt& from, const StateAt& to, std::size_t n) {
  const std::size_t first = n * kVector;
  if (first >= elements) return;
  Floats4 w = load(from.parameters + first);
  Floats4 g = source.four(first);
  TG_UNROLL
  for (int e = 0; e < 4; ++e) g.at[e] = u.scale * g.at[e];
  if (u.weight_decay != 0) {
    TG_UNROLL
    for (int e = 0; e < 4; ++e) {
      if constexpr (kKind == OptimizerKind::kAdamW)
        w.at[e] = w.at[e] - u.decay_rate * u.weight_decay * w.at[e];
      else
        g.at[e] = g.at[e] + u.weight_decay * w.at[e];
    }
  }
  Floats4 next;
  if constexpr (kKind == OptimizerKind::kSgd) {
    TG_UNROLL
    for (int e = 0; e < 4; ++e) next.at[e] = canonical(w.at[e] - u.rate * g.at[e]);
  } else if constexpr (kKind == OptimizerKind::kMomentum) {
    Floats4 slot0 = load(from.slot0 + first);
    TG_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v = u.momentum * slot0.at[e] + g.at[e];
      slot0.at[e] = canonical(v);
      next.at[e] = canonical(w.at[e] - u.rate * v);
    }
    store(slot0, to.slot0 + first);
  } else {
    static_assert(kKind == OptimizerKind::kAdam || kKind == OptimizerKind::kAdamW, "this rule is missing here");
    Floats4 slot0 = load(from.slot0 + first), slot1 = load(from.slot1 + first);
    TG_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float m = u.beta1 * slot0.at[e] + u.one_minus_beta1 * g.at[e];
      const float v = u.beta2 * slot1.at[e] + u.one_minus_beta2 * g.at[e] * g.at[e];
      slot0.at[e] = canonical(m);
      slot1.at[e] = canonical(v);
      next.at[e] = canonical(w.at[e] - u.rate * m / (sqrtf(v) + u.epsilon));
    }
    store(slot0, to.slot0 + first);
    store(slot1, to.slot1 + first);
  }
  store(next, to.parameters + first);
}

}  // namespace tg::kernels::cuda

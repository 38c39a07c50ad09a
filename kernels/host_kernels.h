// The tensor kernels of an instruction set: arithmetic on a gradient and a state in plain host memory. Only the host's
// memory space (host_memory_space.h) calls them on a run's state. The rules of kernels.h hold for all of them.
#pragma once

#include "kernels/types.h"

namespace tg::kernels {

// Optimizer state of a span: slot 0 is the momentum v (momentum) or m (adam), slot 1 is v (adam); unused slots are
// empty.
// `from` and `to` never overlap (the state is double-buffered).
struct StateSpan {
  std::span<float> parameters;
  std::span<float> slot0;
  std::span<float> slot1;
};
struct ConstStateSpan {
  std::span<const float> parameters;
  std::span<const float> slot0;
  std::span<const float> slot1;
};

struct HostKernels {
  Statistics (*statistics)(std::span<const float> gradient);

  // Eq. (1), (3): `first` = index within the segment of gradient[0], a multiple of kBlock. With i = first + position,
  // q = 255.0f / scaler rounded once, and fma a true one:
  //   r8(i) = byte i%16 of the 16 little-endian bytes of draw i/16 of stream 0
  //   d(i)  = (word i%4 of draw 4*(i/512) + i%16/4 of stream 1, >> 8) * 2^-24
  //   T     = trunc(min(fma(min(|g|, clip), q, d), 255));  nonzero iff r8 < T;  negative iff nonzero and g's sign bit
  // All planes are zero if scaler < kSmallestScaler. Every element of the group of 512 shares its 16 dithers.
  void (*ternarize)(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                    Planes codes);

  void (*apply_sums)(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to);
  void (*apply_floats)(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to);

  // apply_sums of the sum of all received codes, in one pass over the state: the additions are hidden behind the memory
  // accesses. False if a payload breaks the format of encode_codes: `to` is unspecified then.
  bool (*apply_codes)(const Update& update, const Received& received, ConstStateSpan from, StateSpan to);

  // gradient[i] += factor * parameters[i]: the weight decay inside the ternary path.
  void (*add_scaled)(std::span<const float> parameters, float factor, std::span<float> gradient);
  // average[i] += rate * (parameters[i] - average[i]), rate = 1 - decay; canonical, like an Update's results.
  void (*average)(std::span<const float> parameters, float rate, std::span<float> average);

  // Order-free 64-bit hash: the sum, modulo 2^64, over all i of a mix of p = first + i, the salt and bits(values[i]),
  // so parts may be hashed in any order and added. lo, hi: the two 32-bit halves; products are 32 x 32 -> 64 bits:
  //   t = p ^ salt;  u = lo(t) * kDigest1 + hi(t);  v = lo(u ^ u >> 32) * kDigest2 + u;
  //   mix = (bits ^ hi(u)) * (hi(v) | 1)
  // A multilinear hash with pseudo-random odd multipliers: one changed value always changes it, several changed values
  // cancel with probability about 2^-31.
  std::uint64_t (*digest)(std::span<const float> values, std::uint64_t first, std::uint64_t salt);
};

}  // namespace tg::kernels

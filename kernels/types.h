// The kernels' arguments and results: statistics, draws, scales, bit planes, update rules. Values only; none of them
// owns memory. Equations are those of Wen et al., "TernGrad", NIPS 2017.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/optimizer_kind.h"

namespace tg::kernels {

inline constexpr std::size_t kBlock = 512;           // elements; alignment of segments, parts and chunks
inline constexpr std::size_t kWordBits = 64;         // elements per word of a bit plane
inline constexpr float kSmallestScaler = 0x1p-100f;  // below it all codes are zero
inline constexpr int kMaxMembers = 127;              // sums of N codes fit int8

static_assert(kBlock % kWordBits == 0, "no word of a plane is cut");
static_assert(kMaxMembers <= INT8_MAX);

inline constexpr std::size_t padded(std::size_t elements) { return (elements + kBlock - 1) / kBlock * kBlock; }

// One pass over a gradient. The order of the additions is part of the contract, so the result is the same bits on every
// variant: element i belongs to lane i % kLanes; a lane adds g and g*g (a separate multiply and add) in float over the
// rows of one kFold-element block, the last block being shorter; at the end of a block each lane's two floats are
// added to its two doubles; at the end the doubles are added in lane order, starting from 0.
// max_abs is the largest |g| by its bits. `finite` is false if any element is NaN or infinite; the other three numbers
// mean nothing then. |g| > 2^63 or so overflows a lane: sum_squares is +inf though `finite` is true.
inline constexpr std::size_t kLanes = 32;
inline constexpr std::size_t kFold = 2048;
static_assert(kBlock % kLanes == 0 && kFold % kLanes == 0, "every row of lanes is whole");
struct Statistics {
  double sum = 0;
  double sum_squares = 0;
  float max_abs = 0;
  bool finite = true;
  // Adds the statistics of the elements that follow these. The order of joining is part of the result.
  void join(const Statistics& next) {
    sum += next.sum;
    sum_squares += next.sum_squares;
    max_abs = max_abs < next.max_abs ? next.max_abs : max_abs;
    finite = finite && next.finite;
  }
};

// Philox4x32-10 key and counter of one segment's draws: counter = {i/16, seat, segment | stream<<31, step}.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t seat = 0;
  std::uint32_t segment = 0;
  std::uint32_t step = 0;
};

// What ternarize needs to know about the scalers: clip bounds |g| (c*sigma; +inf with clipping off; the shared scaler
// in the `repo` recipe), scaler is the shared s of eq. (4).
struct Scale {
  float clip = 0;
  float scaler = 0;
};

// Two bit planes, bit i%64 of word i/64 = element i. negative is a subset of nonzero.
struct Planes {
  std::span<std::uint64_t> nonzero;
  std::span<std::uint64_t> negative;
};
struct ConstPlanes {
  std::span<const std::uint64_t> nonzero;
  std::span<const std::uint64_t> negative;
};

// From this many parameters on, a model's state leaves the caches between two steps anyway (two halves of parameters
// and momentum, and the gradient: 20 bytes a parameter, beside other nodes or programs). Writing past the caches then
// saves reading every line that is about to be overwritten. Below it the cached copies are worth more. Two nodes with
// 1.76 M parameters on a busy machine, direct: 6.9 and 6.3 ms a step without, 6.0 and 6.0 with; with 0.43 M no
// difference.
inline constexpr std::size_t kPastCaches = 1024 * 1024;

// One step's update rule, all scalars already resolved (schedules and bias corrections are applied by the caller).
//   sgd:       w -= rate * g
//   momentum:  v = momentum * v + g;  w -= rate * v                                      (TensorFlow's form)
//   adam:      m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g*g;  w -= rate * m / (sqrt(v) + epsilon)
//              (rate carries sqrt(1-beta2^t)/(1-beta1^t); one_minus_* are given so that every variant uses the same)
//   adamw:     as adam, from w - decay_rate * weight_decay * w instead of w             (Loshchilov and Hutter, 2019)
// g = scale * float(source), then, except for adamw, g = g + weight_decay * w. What has weight_decay in it is done only
// where that is not 0 (it is 0 unless the decay goes outside the ternary path). Products and quotients associate from
// the left, as C++ reads the formulas:
// ((1-beta2)*g)*g, (rate*m)/(...). Every operation is rounded to float on its own; nothing is fused. The results,
// parameters and slots, are canonical: every NaN has the bits 0x7FC00000, or variants would differ.
struct Update {
  OptimizerKind kind = OptimizerKind::kSgd;
  float rate = 0;
  float scale = 0;
  float weight_decay = 0;
  float momentum = 0;
  float beta1 = 0, one_minus_beta1 = 0;
  float beta2 = 0, one_minus_beta2 = 0;
  float epsilon = 0;
  float decay_rate = 0;
  bool past_caches = false;  // a hint: write the results past the caches (kPastCaches)
};

// One step's codes of all members, some still payloads of encode_codes, some already planes; at most kMaxMembers.
struct Received {
  std::span<const std::span<const std::byte>> payloads;
  std::span<const ConstPlanes> planes;
};

// s' = float(double(s) * 256 / 255) is the magnitude that a nonzero code stands for, so that E[code] * s' = g
// (eq. (10)).
inline float applied_scale(float scaler) { return static_cast<float>(static_cast<double>(scaler) * 256.0 / 255.0); }

// The clipping bound c*sigma (paper, section 3.3, eq. (21); sigma over `elements` real elements, population form). The
// local scaler of eq. (2) is min(max|g|, bound). The bound is +inf, so that nothing is clipped,
//   - for c = 0;
//   - where the variance is below 2^-18 of the mean square, which the float lanes cannot tell from 0. A segment of one
//     element is such a case: with the bound c*sigma = 0 it would never learn;
//   - where the variance has overflowed.
float clip_bound(const Statistics& statistics, std::size_t elements, float clip_sigma);

}  // namespace tg::kernels

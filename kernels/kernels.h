// The kernels' contract: arithmetic on raw spans, one table of functions per instruction set.
//
// Shapes. Every span of elements has a length that is a multiple of kBlock and starts 64-byte aligned.
// Segments are padded to kBlock with zeros in every flat array, so no kernel has a tail: the padding of a
// gradient is 0, its codes are 0, its sums are 0, its parameters stay 0. Payload bytes may start anywhere.
// Exactness. All variants give the same bits for the same input (statistics and floats included); the scalar
// variant defines what is right. Tests compare every variant present with it.
// Threads. All functions are pure; any thread may call them. FTZ/DAZ must be off in the caller.
// Memory. A kernel allocates nothing, except that each calling thread keeps the room for the raw payload of the largest
// chunk that it has taken through the entropy coder (scratch.h).
// Errors. A kernel never fails on numbers; the functions that read payloads from a peer say false for bytes
// that break the format, write nothing outside their spans, and leave the output unspecified then.
//
// Equations are those of Wen et al., "TernGrad", NIPS 2017.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::kernels {

inline constexpr std::size_t kBlock = 512;           // elements; alignment of segments, parts and chunks
inline constexpr std::size_t kWordBits = 64;         // elements per word of a bit plane
inline constexpr float kSmallestScaler = 0x1p-100f;  // below it all codes are zero
inline constexpr int kMostMembers = 127;             // sums of N codes fit int8

inline constexpr std::size_t padded(std::size_t elements) { return (elements + kBlock - 1) / kBlock * kBlock; }

// One pass over a gradient. The order of the additions is part of the contract, so the result is the same bits on every
// variant: element i belongs to lane i % kLanes; a lane adds g and g*g (a separate multiply and add) in float over the
// rows of one kFold-element block, the last block being shorter; at the end of a block each lane's two floats are
// added to its two doubles; at the end the doubles are added in lane order, starting from 0.
// max_abs is the largest |g| by its bits. `finite` is false if any element is NaN or infinite; the other three numbers
// mean nothing then. |g| > 2^63 or so overflows a lane: sum_squares is +inf though `finite` is true.
inline constexpr std::size_t kLanes = 32;
inline constexpr std::size_t kFold = 2048;
struct Statistics {
  double sum = 0;
  double sum_squares = 0;
  float max_abs = 0;
  bool finite = true;
  // Of what follows. The order of joining is part of the result.
  void join(const Statistics& next) {
    sum += next.sum;
    sum_squares += next.sum_squares;
    max_abs = max_abs < next.max_abs ? next.max_abs : max_abs;
    finite = finite && next.finite;
  }
};

// Philox4x32-10 key and counter of one segment's draws: counter = {i/16, rank, segment | stream<<31, step}.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t rank = 0;
  std::uint32_t segment = 0;
  std::uint32_t step = 0;
};

// What ternarize needs to know of the scalers: clip bounds |g| (c*sigma; +inf with clipping off; the shared scaler
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

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdam };

// From this many parameters on, a model's state leaves the caches between two steps anyway (two halves of parameters
// and momentum, the gradient: 20 bytes each, and nodes or other programs beside): writing past them saves the reading
// of every line that is about to be overwritten. Below it the caches' copies are worth more. Two nodes with 1.76 M
// parameters on a busy machine, direct: 6.9 and 6.3 ms a step without, 6.0 and 6.0 with; with 0.43 M no difference.
inline constexpr std::size_t kPastCaches = 1024 * 1024;

// One step's update rule, all scalars already resolved (schedules and bias corrections are applied by the caller).
//   sgd:       w -= rate * g
//   momentum:  v = momentum * v + g;  w -= rate * v                                      (TensorFlow's form)
//   adam:      m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g*g;  w -= rate * m / (sqrt(v) + epsilon)
//              (rate carries sqrt(1-beta2^t)/(1-beta1^t); one_minus_* are given so that every variant uses the same)
// g = scale * float(source), then g = g + weight_decay * w where weight_decay is not 0 (it is 0 unless the decay goes
// outside the ternary path). Products and quotients associate from the left, as C++ reads the formulas:
// ((1-beta2)*g)*g, (rate*m)/(...). Every operation is rounded to float on its own; nothing is fused.
struct Update {
  OptimizerKind kind = OptimizerKind::kSgd;
  float rate = 0;
  float scale = 0;
  float weight_decay = 0;
  float momentum = 0;
  float beta1 = 0, one_minus_beta1 = 0;
  float beta2 = 0, one_minus_beta2 = 0;
  float epsilon = 0;
  bool past_caches = false;  // a hint: write the results past the caches (kPastCaches)
};

// Optimizer state of a span: slot 0 is the momentum v (momentum) or m (adam), slot 1 is v (adam); unused ones empty.
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

// One step's codes of all members, some still in payloads of encode_codes, some already planes; kMostMembers in all.
struct Received {
  std::span<const std::span<const std::byte>> payloads;
  std::span<const ConstPlanes> planes;
};

struct Kernels {
  std::string_view name;  // "scalar", "avx2", "avx512"

  Statistics (*statistics)(std::span<const float> gradient);

  // Eq. (1), (3): `first` = index within the segment of gradient[0], a multiple of kBlock. With i = first + position,
  // q = 255.0f / scaler rounded once, and fma a true one:
  //   r8(i) = byte i%16 of the 16 little-endian bytes of draw i/16 of stream 0
  //   d(i)  = (word i%4 of draw 4*(i/512) + i%16/4 of stream 1, >> 8) * 2^-24
  //   T     = trunc(min(fma(min(|g|, clip), q, d), 255));  nonzero iff r8 < T;  negative iff nonzero and g's sign bit
  // All planes are zero if scaler < kSmallestScaler. Every element of the group of 512 shares its 16 dithers.
  void (*ternarize)(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                    Planes codes);

  // Ones of a plane.
  std::uint64_t (*count)(std::span<const std::uint64_t> plane);

  // Codes on the wire, raw: the nonzero mask (elements/8 bytes, little-endian words), then one sign bit per nonzero
  // element in order (1 = negative), the last byte zero-padded. The payload has room for codes_bound bytes; what
  // follows the bytes written is scratch. Returns the bytes written (<= codes_bound).
  std::size_t (*encode_codes)(ConstPlanes codes, std::span<std::byte> payload);
  // Checks the length and the padding bits against the mask, then writes planes. elements = words * 64.
  bool (*decode_codes)(std::span<const std::byte> payload, Planes codes);
  // sums[i] += code[i]; checks as decode_codes does, before it adds anything.
  bool (*accumulate_codes)(std::span<const std::byte> payload, std::span<std::int8_t> sums);
  void (*accumulate_planes)(ConstPlanes codes, std::span<std::int8_t> sums);

  // Sums of N codes on the wire, raw unary planes: the nonzero mask; one sign bit per nonzero element; then for level
  // m = 1, 2, ... while any element has |sum| >= m and m < members: one bit per element with |sum| >= m that says
  // |sum| > m. Every plane starts on a byte, its last byte zero-padded. The payload has room for sums_bound bytes; what
  // follows the bytes written is scratch. |sums| <= members <= kMostMembers. Returns the bytes written (<= sums_bound).
  std::size_t (*encode_sums)(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload);
  bool (*decode_sums)(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums);

  // The same, entropy-coded: what the encode_* above would have written, its bits coded with one probability for every
  // run of the mask (the parts of segments that make up the span: multiples of kBlock that add up to it, the same list
  // on both sides) and one for every level plane. Codes are the sums of one member.
  //   payload  := high[lanes] low[lanes] probability[runs] probability[levels] signs stream
  //   high,low := the coder's final states, 16 bits per lane, high >= 1; lanes = 256 from 128 Ki elements on, else 64
  //   probability := rare | flag << 7: 256ths of the plane's rarer symbol, the zeros if flag is set. rare is
  //               round(256 * rarer / coded), ties up, at least 1, at most 127; 0, and then the plane takes no bytes,
  //               if it does not occur. flag is set iff there are more ones than zeros. An empty run: 0.
  //   signs    := the raw payload's sign bytes from byte `lanes` on. The first ones are the initial states' low bytes.
  //   stream   := the bytes that the states gave away, up to the end of the payload
  // Coding (rANS, Duda 2013). Lane l's state x starts at 256 + sign byte l (256 where there is none). Coded are the
  // level planes, the last one first, each padded with zeros to a multiple of `lanes`, then the mask, run by run; bit e
  // of a plane or run belongs to lane e % lanes. The rarer symbol has [0, rare) of the 256, the other the rest; f the
  // width, c the start of the bit's interval:
  //   if x >= 256 f: append byte x % 256, x = x / 256;      x = x / f * 256 + x % f + c
  // A decoder goes backward, from the last byte and the last bit, and must end at states of 256..511, at the last byte
  // of the signs. No number travels twice: every length follows from what has been decoded, and exactly one payload
  // stands for given codes or sums. Returns the bytes written, or 0 if they would not be fewer than the raw ones: then
  // what was written is scratch, and the raw format is to be sent.
  std::size_t (*encode_codes_rans)(ConstPlanes codes, std::span<const std::size_t> runs, std::span<std::byte> payload);
  bool (*decode_codes_rans)(std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes);
  std::size_t (*encode_sums_rans)(std::span<const std::int8_t> sums, int members, std::span<const std::size_t> runs,
                                  std::span<std::byte> payload);
  bool (*decode_sums_rans)(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                           std::span<std::int8_t> sums);

  void (*apply_sums)(const Update& update, std::span<const std::int8_t> sums, ConstStateSpan from, StateSpan to);
  void (*apply_floats)(const Update& update, std::span<const float> sums, ConstStateSpan from, StateSpan to);

  // apply_sums of the sums of all that was received, in one pass over the state: the adding up is hidden behind the
  // memory. False if a payload breaks the format of encode_codes: `to` is unspecified then.
  bool (*apply_codes)(const Update& update, const Received& received, ConstStateSpan from, StateSpan to);

  // total[i] += addend[i], the addend being unaligned little-endian float32 bytes of a payload.
  void (*accumulate_floats)(std::span<const std::byte> addend, std::span<float> total);
  // total[i] += scale or -= scale where the code is 1 or -1; untouched where it is 0.
  void (*accumulate_scaled)(ConstPlanes codes, float scale, std::span<float> total);
  // IEEE binary16, little-endian, two bytes per value: rounded to nearest, ties to even; subnormals are kept, what is
  // too large becomes infinity, a NaN stays a NaN (made quiet).
  void (*encode_halves)(std::span<const float> values, std::span<std::byte> payload);
  void (*decode_halves)(std::span<const std::byte> payload, std::span<float> values);
  // total[i] += addend[i].
  void (*accumulate_halves)(std::span<const std::byte> addend, std::span<float> total);
  // gradient[i] += factor * parameters[i]: the weight decay inside the ternary path.
  void (*add_scaled)(std::span<const float> parameters, float factor, std::span<float> gradient);
  // average[i] += rate * (parameters[i] - average[i]), rate = 1 - decay.
  void (*average)(std::span<const float> parameters, float rate, std::span<float> average);

  // Order-free 64-bit hash: the sum, modulo 2^64, over all i of a mix of p = first + i, the salt and bits(values[i]),
  // so parts may be hashed in any order and added. lo, hi: the two 32-bit halves; products are 32 x 32 -> 64 bits:
  //   t = p ^ salt;  u = lo(t) * kDigest1 + hi(t);  v = lo(u ^ u >> 32) * kDigest2 + u;
  //   mix = (bits ^ hi(u)) * (hi(v) | 1)
  // A multilinear hash with pseudo-random odd multipliers: one changed value always changes it, several changed values
  // cancel with probability about 2^-31.
  std::uint64_t (*digest)(std::span<const float> values, std::uint64_t first, std::uint64_t salt);
};

// Room for a payload in bytes, whichever of the two formats is written. Raw: one bit per element and plane (codes: mask
// and signs; sums: those and members - 1 levels). Entropy-coded: the coder gives up once it has written as many bytes
// as the raw format has, looks every kBlock bits, and a bit appends one byte at most.
inline constexpr std::size_t kPayloadSlack = kBlock;
inline constexpr std::size_t codes_bound(std::size_t elements) { return elements / 8 * 2 + kPayloadSlack; }
std::size_t sums_bound(std::size_t elements, int members);

// s' = float(double(s) * 256 / 255): the magnitude a nonzero code stands for, so that E[code] * s' = g (eq. (10)).
inline float applied_scale(float scaler) { return static_cast<float>(static_cast<double>(scaler) * 256.0 / 255.0); }

// The clipping bound c*sigma (section 3.2 of the paper, sigma over `elements` real elements, population form), +inf
// for c = 0; the local scaler of eq. (2) is min(max|g|, bound). +inf too where there is no spread to clip by: the
// variance is below 2^-18 of the mean square, which the float lanes cannot tell from 0 (a segment of one element,
// say, which c*sigma = 0 would keep from learning at all), or it has overflowed.
float clip_bound(const Statistics& statistics, std::size_t elements, float clip_sigma);

// The variants this processor can run, best first; the last is scalar.
const std::vector<const Kernels*>& available();
// "auto" = the best that passes its self-test; else the named one, or an error that lists what there is.
Result<const Kernels*> select(std::string_view name);
// Runs every function of the table against the scalar one over awkward lengths; false names no one: the caller does.
bool self_test(const Kernels& kernels);

// Philox4x32-10 (Salmon et al., SC 2011), for everything that draws: out = 4 words.
void philox4x32(const std::uint32_t counter[4], std::uint64_t key, std::uint32_t out[4]);

}  // namespace tg::kernels

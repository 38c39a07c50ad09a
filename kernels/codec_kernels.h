// The codec kernels: codes, sums and floats on their way between members. Host memory only, wherever a run's gradient
// and state live (tensor_kernels.h). The rules of kernels.h hold for all of them.
#pragma once

#include "kernels/types.h"

namespace tg::kernels {

struct CodecKernels {
  // The number of ones in a plane.
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

  // Sums of N codes on the wire, as raw unary planes: the nonzero mask; one sign bit per nonzero element; then for
  // level m = 1, 2, ... while any element has |sum| >= m and m < members: one bit per element with |sum| >= m that says
  // |sum| > m. Every plane starts on a byte, its last byte zero-padded. The payload has room for sums_bound bytes; what
  // follows the bytes written is scratch. |sums| <= members <= kMaxMembers. Returns the bytes written (<= sums_bound).
  std::size_t (*encode_sums)(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload);
  bool (*decode_sums)(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums);

  // Codes and sums, entropy-coded: what the encode_* functions above would have written, with one probability for every
  // run of the mask (the parts of segments that make up the span: multiples of kBlock that add up to it, the same list
  // on both sides) and one for every level plane. Codes are coded as the sums of one member.
  //   payload  := high[lanes] low[lanes] probability[runs] probability[levels] signs stream
  //   high,low := the coder's final states, 16 bits per lane, high >= 1; lanes = 256 from 128 Ki elements on, else 64
  //   probability := rare | flag << 7. flag is set iff there are more ones than zeros; the rarer symbol is then the
  //               zero. rare, in 256ths, is round(256 * rarer / coded), ties up, at least 1, at most 127. If the rarer
  //               symbol does not occur, rare is 0 and the plane takes no bytes. An empty run has probability 0.
  //   signs    := the raw payload's sign bytes from byte `lanes` on. The first ones are the initial states' low bytes.
  //   stream   := the bytes that the states gave away, up to the end of the payload
  // Coding (rANS, Duda 2013). Lane l's state x starts at 256 + sign byte l (256 where there is none). Coded are the
  // level planes, the last one first, each padded with zeros to a multiple of `lanes`, then the mask, run by run; in a
  // plane or run bit e belongs to lane e % lanes. The rarer symbol has [0, rare) of the 256, the other the rest; f the
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

  // total[i] += addend[i], the addend being unaligned little-endian float32 bytes of a payload.
  void (*accumulate_floats)(std::span<const std::byte> addend, std::span<float> total);
  // total[i] += scale or -= scale where the code is 1 or -1; untouched where it is 0.
  void (*accumulate_scaled)(ConstPlanes codes, float scale, std::span<float> total);
  // IEEE binary16, little-endian, two bytes per value: rounded to nearest, ties to even; subnormals are kept, what is
  // too large becomes infinity, a NaN stays a NaN (made quiet).
  void (*encode_float16)(std::span<const float> values, std::span<std::byte> payload);
  void (*decode_float16)(std::span<const std::byte> payload, std::span<float> values);
  // total[i] += addend[i].
  void (*accumulate_float16)(std::span<const std::byte> addend, std::span<float> total);
};

// Room for a payload in bytes, whichever of the two formats is written. Raw: one bit per element and plane (codes: mask
// and signs; sums: those and members - 1 levels). Entropy-coded: a bit appends one byte at most, and every kBlock bits
// the coder looks whether it has written as many bytes as the raw format has, and gives up then.
inline constexpr std::size_t kPayloadSlack = kBlock;
inline constexpr std::size_t codes_bound(std::size_t elements) { return elements / 8 * 2 + kPayloadSlack; }
std::size_t sums_bound(std::size_t elements, int members);

}  // namespace tg::kernels

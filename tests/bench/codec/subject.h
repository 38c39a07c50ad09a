// One gradient as the codec meets it: every segment has a clip, a scaler and a coding probability of its own, and the
// members' draws are coded chunk by chunk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::kernels {

inline constexpr std::size_t kChunk = 512 * 1024;  // elements; the last chunk also takes what is left over
inline constexpr std::size_t kMembers = 8;

struct Subject {
  struct Segment {
    std::size_t begin = 0, count = 0;  // multiples of kBlock
    std::vector<float> clips;          // by member, as gradients
    float scaler = 0;                  // the shared one
  };
  std::string name;
  std::vector<std::span<const float>> gradients;  // by member; a single one is every member's
  std::vector<Segment> segments;                  // all of a gradient, in order

  // Draws the members' codes, the sums of all and the codes of the last, and finds their entropy.
  void draw(const Kernels& k);

  void encode_codes(const Kernels& k);
  bool decode_codes(const Kernels& k);
  void encode_sums(const Kernels& k);
  bool decode_sums(const Kernels& k);
  // Codes and decodes everything. False, with a line on stderr, where the result differs. The sizes count a chunk as
  // raw where entropy coding does not make it smaller.
  bool comes_back(const Kernels& k);

  std::size_t elements() const { return gradients.front().size(); }

  // What draw and comes_back found.
  double zeros = 0, codes_bits = 0, sums_bits = 0;  // bits: the entropy
  std::size_t codes_bytes = 0, sums_bytes = 0;

 private:
  struct Chunk {
    std::size_t begin = 0, count = 0;
    std::vector<std::size_t> runs;
  };
  void cut();
  void count_entropy();
  ConstPlanes codes_of(std::size_t begin, std::size_t count) const;
  Planes decoded_codes_of(const Chunk& chunk);
  std::span<std::byte> codes_room_of(const Chunk& chunk);
  std::span<std::byte> sums_room_of(const Chunk& chunk);

  std::vector<Chunk> chunks_;
  // Results of one variant; the bytes are the same for every variant.
  AlignedArray<std::uint64_t> nonzero_, negative_, decoded_nonzero_, decoded_negative_;
  AlignedArray<std::int8_t> sums_, decoded_sums_;
  AlignedArray<std::byte> codes_room_, sums_room_;
  std::vector<std::span<const std::byte>> codes_, sums_coded_;  // chunk by chunk; empty: raw was no larger
};

}  // namespace tg::kernels

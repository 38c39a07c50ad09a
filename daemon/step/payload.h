// A chunk's ternary payload: which format it gets, and the kernels that write and read it.
//
// Raw planes, or entropy-coded where the run's coding says so and the chunk comes out smaller: the format stands in the
// frame, chunk by chunk. Owns scratch for the planes of one chunk: those of one member, in a direct exchange those of
// all. One thread. Decoders return false for bytes that break their format; the output is unspecified then.
#pragma once

#include <cstddef>
#include <span>

#include "daemon/exchange/layout.h"
#include "kernels/base/aligned_array.h"
#include "kernels/codec_kernels.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class PayloadCodec {
 public:
  PayloadCodec(const kernels::CodecKernels& kernels, const Layout& layout);

  struct Written {
    std::size_t bytes = 0;
    schema::PayloadFormat format = schema::PayloadFormat::kCodesRaw;
  };
  Written write_codes(const ChunkLayout& chunk, kernels::ConstPlanes codes, std::span<std::byte> payload);
  Written write_sums(const ChunkLayout& chunk, std::span<const std::int8_t> sums, std::span<std::byte> payload);
  // sums[i] += code[i].
  bool add_codes(const ChunkLayout& chunk, const schema::Chunk& received, std::span<std::int8_t> sums);
  // The codes themselves, valid until the next call with this slot; a direct exchange has a slot for each member.
  bool read_codes(const ChunkLayout& chunk, const schema::Chunk& received, std::size_t slot,
                  kernels::ConstPlanes& codes);
  bool read_sums(const ChunkLayout& chunk, const schema::Chunk& received, std::span<std::int8_t> sums);

  static std::size_t bytes(const Layout& layout) { return layout.longest_chunk / 8 * 2 * slots(layout); }

 private:
  static std::size_t slots(const Layout& layout) { return layout.sharded() ? 1 : layout.members; }
  kernels::Planes scratch(const ChunkLayout& chunk, std::size_t slot);

  const kernels::CodecKernels& kernels_;
  const schema::Coding coding_;
  const int members_;
  const std::size_t words_;                         // in the longest chunk
  AlignedArray<std::uint64_t> nonzero_, negative_;  // one chunk for every slot
};

}  // namespace tg::daemon

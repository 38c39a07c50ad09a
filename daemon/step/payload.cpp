#include "daemon/step/payload.h"

namespace tg::daemon {

using schema::PayloadFormat;

PayloadCodec::PayloadCodec(const kernels::CodecKernels& kernels, const Layout& layout)
    : kernels_(kernels),
      coding_(layout.coding),
      members_(static_cast<int>(layout.members)),
      words_(layout.longest_chunk / kernels::kWordBits),
      nonzero_(words_ * slots(layout)),
      negative_(words_ * slots(layout)) {}

kernels::Planes PayloadCodec::scratch(const ChunkLayout& chunk, std::size_t slot) {
  const std::size_t first = slot * words_, count = chunk.size() / kernels::kWordBits;
  return {nonzero_.span().subspan(first, count), negative_.span().subspan(first, count)};
}

PayloadCodec::Written PayloadCodec::write_codes(const ChunkLayout& chunk, kernels::ConstPlanes codes,
                                                std::span<std::byte> payload) {
  if (coding_ == schema::Coding::kEntropy)
    if (const std::size_t bytes = kernels_.encode_codes_rans(codes, chunk.runs, payload))
      return {bytes, PayloadFormat::kCodesRans};
  return {kernels_.encode_codes(codes, payload), PayloadFormat::kCodesRaw};
}

PayloadCodec::Written PayloadCodec::write_sums(const ChunkLayout& chunk, std::span<const std::int8_t> sums,
                                               std::span<std::byte> payload) {
  if (coding_ == schema::Coding::kEntropy)
    if (const std::size_t bytes = kernels_.encode_sums_rans(sums, members_, chunk.runs, payload))
      return {bytes, PayloadFormat::kSumsRans};
  return {kernels_.encode_sums(sums, members_, payload), PayloadFormat::kSumsRaw};
}

bool PayloadCodec::read_codes(const ChunkLayout& chunk, const schema::Chunk& received, std::size_t slot,
                              kernels::ConstPlanes& codes) {
  const kernels::Planes planes = scratch(chunk, slot);
  codes = {planes.nonzero, planes.negative};
  return received.format == PayloadFormat::kCodesRans ? kernels_.decode_codes_rans(received.payload, chunk.runs, planes)
                                                      : kernels_.decode_codes(received.payload, planes);
}

bool PayloadCodec::add_codes(const ChunkLayout& chunk, const schema::Chunk& received, std::span<std::int8_t> sums) {
  if (received.format == PayloadFormat::kCodesRaw) return kernels_.accumulate_codes(received.payload, sums);
  kernels::ConstPlanes codes;
  if (!read_codes(chunk, received, 0, codes)) return false;
  kernels_.accumulate_planes(codes, sums);
  return true;
}

bool PayloadCodec::read_sums(const ChunkLayout& chunk, const schema::Chunk& received, std::span<std::int8_t> sums) {
  return received.format == PayloadFormat::kSumsRans
             ? kernels_.decode_sums_rans(received.payload, members_, chunk.runs, sums)
             : kernels_.decode_sums(received.payload, members_, sums);
}

}  // namespace tg::daemon

#include "tests/bench/codec/subject.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

namespace tg::kernels {
namespace {

double plogp(std::size_t count, std::size_t of) {  // bits that `count` of `of` equal symbols take at least
  return count == 0 ? 0 : -static_cast<double>(count) * std::log2(static_cast<double>(count) / static_cast<double>(of));
}

std::size_t ones_of(std::span<const std::uint64_t> plane) {
  std::size_t ones = 0;
  for (const std::uint64_t word : plane) ones += static_cast<std::size_t>(std::popcount(word));
  return ones;
}

}  // namespace

void Subject::cut() {
  chunks_.clear();
  const std::size_t count = std::max<std::size_t>(elements() / kChunk, 1);
  for (std::size_t c = 0; c < count; ++c) {
    Chunk chunk{c * kChunk, c + 1 < count ? kChunk : elements() - c * kChunk, {}};
    for (const Segment& segment : segments) {
      const std::size_t begin = std::max(segment.begin, chunk.begin);
      const std::size_t end = std::min(segment.begin + segment.count, chunk.begin + chunk.count);
      if (begin < end) chunk.runs.push_back(end - begin);
    }
    chunks_.push_back(std::move(chunk));
  }
}

void Subject::draw(const Kernels& k) {
  cut();
  for (auto* const plane : {&nonzero_, &negative_, &decoded_nonzero_, &decoded_negative_})
    *plane = AlignedArray<std::uint64_t>(elements() / kWordBits);
  sums_ = AlignedArray<std::int8_t>(elements());
  decoded_sums_ = AlignedArray<std::int8_t>(elements());
  codes_room_ = AlignedArray<std::byte>((chunks_.size() + 1) * codes_bound(kChunk));
  sums_room_ = AlignedArray<std::byte>((chunks_.size() + 1) * sums_bound(kChunk, kMembers));
  for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
    const std::size_t whose = rank % gradients.size();
    for (std::uint32_t s = 0; s < segments.size(); ++s) {
      const Segment& segment = segments[s];
      const std::size_t word = segment.begin / kWordBits, words = segment.count / kWordBits;
      k.ternarize(gradients[whose].subspan(segment.begin, segment.count), 0, {.seed = 1, .seat = rank, .segment = s},
                  {segment.clips[whose], segment.scaler},
                  {nonzero_.span().subspan(word, words), negative_.span().subspan(word, words)});
    }
    k.accumulate_planes({nonzero_.span(), negative_.span()}, sums_.span());
  }
  count_entropy();
}

void Subject::count_entropy() {
  std::size_t all_ones = 0;
  for (const Chunk& chunk : chunks_) {
    std::size_t begin = chunk.begin;
    for (const std::size_t run : chunk.runs) {
      const ConstPlanes codes = codes_of(begin, run);
      const std::size_t ones = ones_of(codes.nonzero), negatives = ones_of(codes.negative);
      codes_bits += plogp(run - ones, run) + plogp(negatives, run) + plogp(ones - negatives, run);
      std::array<std::size_t, 2 * kMembers + 1> counts{};
      for (const std::int8_t sum : sums_.span().subspan(begin, run))
        ++counts[static_cast<std::size_t>(sum + static_cast<int>(kMembers))];
      for (const std::size_t count : counts) sums_bits += plogp(count, run);
      all_ones += ones;
      begin += run;
    }
  }
  zeros = 1 - static_cast<double>(all_ones) / static_cast<double>(elements());
}

ConstPlanes Subject::codes_of(std::size_t begin, std::size_t count) const {
  return {nonzero_.span().subspan(begin / kWordBits, count / kWordBits),
          negative_.span().subspan(begin / kWordBits, count / kWordBits)};
}

Planes Subject::decoded_codes_of(const Chunk& chunk) {
  return {decoded_nonzero_.span().subspan(chunk.begin / kWordBits, chunk.count / kWordBits),
          decoded_negative_.span().subspan(chunk.begin / kWordBits, chunk.count / kWordBits)};
}

// The last chunk is less than two chunks long, and there is room for one more than there are.
std::span<std::byte> Subject::codes_room_of(const Chunk& chunk) {
  return codes_room_.span().subspan(chunk.begin / kChunk * codes_bound(kChunk), codes_bound(chunk.count));
}

std::span<std::byte> Subject::sums_room_of(const Chunk& chunk) {
  return sums_room_.span().subspan(chunk.begin / kChunk * sums_bound(kChunk, kMembers),
                                   sums_bound(chunk.count, kMembers));
}

void Subject::encode_codes(const Kernels& k) {
  codes_.clear();
  for (const Chunk& chunk : chunks_) {
    const auto room = codes_room_of(chunk);
    codes_.push_back(room.first(k.encode_codes_rans(codes_of(chunk.begin, chunk.count), chunk.runs, room)));
  }
}

bool Subject::decode_codes(const Kernels& k) {
  bool good = true;
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    good = good && (codes_[c].empty() || k.decode_codes_rans(codes_[c], chunks_[c].runs, decoded_codes_of(chunks_[c])));
  return good;
}

void Subject::encode_sums(const Kernels& k) {
  sums_coded_.clear();
  for (const Chunk& chunk : chunks_) {
    const auto room = sums_room_of(chunk);
    const auto from = sums_.span().subspan(chunk.begin, chunk.count);
    sums_coded_.push_back(room.first(k.encode_sums_rans(from, kMembers, chunk.runs, room)));
  }
}

bool Subject::decode_sums(const Kernels& k) {
  bool good = true;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const auto to = decoded_sums_.span().subspan(chunks_[c].begin, chunks_[c].count);
    good = good && (sums_coded_[c].empty() || k.decode_sums_rans(sums_coded_[c], kMembers, chunks_[c].runs, to));
  }
  return good;
}

bool Subject::comes_back(const Kernels& k) {
  encode_codes(k);
  encode_sums(k);
  bool good = decode_codes(k) && decode_sums(k);
  codes_bytes = sums_bytes = 0;
  std::vector<std::byte> raw(sums_bound(2 * kChunk, kMembers));
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Chunk& chunk = chunks_[c];
    const ConstPlanes codes = codes_of(chunk.begin, chunk.count);
    const Planes decoded = decoded_codes_of(chunk);
    const auto sums = sums_.span().subspan(chunk.begin, chunk.count);
    codes_bytes += codes_[c].empty() ? k.encode_codes(codes, raw) : codes_[c].size();
    sums_bytes += sums_coded_[c].empty() ? k.encode_sums(sums, kMembers, raw) : sums_coded_[c].size();
    if (!codes_[c].empty())
      good = good && std::ranges::equal(decoded.nonzero, codes.nonzero) &&
             std::ranges::equal(decoded.negative, codes.negative);
    if (!sums_coded_[c].empty())
      good = good && std::ranges::equal(decoded_sums_.span().subspan(chunk.begin, chunk.count), sums);
  }
  if (!good) std::fprintf(stderr, "%s: %s does not come back\n", name.c_str(), k.name.data());
  return good;
}

}  // namespace tg::kernels

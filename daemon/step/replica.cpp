#include "daemon/step/replica.h"

#include <algorithm>
#include <bit>

#include "engine/model.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// The highest bit of the mantissa: the next update does not round it away.
constexpr std::uint32_t kFlippedBit = 1u << 22;

}  // namespace

Replica::Replica(const engine::SegmentTable& segments, int slot_count, std::uint64_t seed, bool keeps_average)
    : segments_(segments),
      slot_count_(slot_count),
      keeps_average_(keeps_average),
      average_(keeps_average ? segments.padded_count() : 0) {
  for (Half& half : halves_) {
    half.parameters = AlignedArray<float>(segments.padded_count());
    for (int s = 0; s < slot_count; ++s) half.slots.emplace_back(segments.padded_count());
  }
  engine::initialize(segments, seed, halves_[0].parameters.data());
  if (keeps_average_) std::copy(halves_[0].parameters.begin(), halves_[0].parameters.end(), average_.begin());
}

kernels::ConstStateSpan Replica::committed(std::size_t begin, std::size_t count) const {
  const Half& half = halves_[current_];
  kernels::ConstStateSpan span{half.parameters.span().subspan(begin, count), {}, {}};
  if (slot_count_ > 0) span.slot0 = half.slots[0].span().subspan(begin, count);
  if (slot_count_ > 1) span.slot1 = half.slots[1].span().subspan(begin, count);
  return span;
}

kernels::StateSpan Replica::next(std::size_t begin, std::size_t count) {
  Half& half = halves_[1 - current_];
  kernels::StateSpan span{half.parameters.span().subspan(begin, count), {}, {}};
  if (slot_count_ > 0) span.slot0 = half.slots[0].span().subspan(begin, count);
  if (slot_count_ > 1) span.slot1 = half.slots[1].span().subspan(begin, count);
  return span;
}

void Replica::commit(const kernels::Kernels& kernels, float average_rate) {
  current_ = 1 - current_;
  ++committed_steps_;
  if (keeps_average_) kernels.average(parameters(), average_rate, average_.span());
}

std::vector<std::uint64_t> Replica::segment_digests(const kernels::Kernels& kernels) const {
  std::vector<std::uint64_t> digests;
  digests.reserve(segments_.size());
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const std::size_t begin = segments_[s].offset, count = segments_[s].padded_count();
    const auto hash = [&](std::span<const float> values, std::uint64_t array) {
      return kernels.digest(values.subspan(begin, count), 0, s * 4 + array);
    };
    std::uint64_t digest = hash(parameters(), 0) + (keeps_average_ ? hash(average(), 3) : 0);
    for (int slot_index = 0; slot_index < slot_count_; ++slot_index)
      digest += hash(slot(slot_index), static_cast<std::uint64_t>(slot_index) + 1);
    digests.push_back(digest);
  }
  return digests;
}

std::uint64_t Replica::combine(const std::vector<std::uint64_t>& segment_digests) {
  std::uint64_t digest = 0;
  for (const std::uint64_t part : segment_digests) digest += part;
  return digest;
}

void Replica::flip_bit(std::size_t element) {
  TG_CHECK(element < parameters().size(), element);
  float& value = halves_[current_].parameters[element];
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ kFlippedBit);
}

std::size_t Replica::bytes(const engine::SegmentTable& segments, int slot_count, bool keeps_average) {
  const std::size_t arrays = 2 * (1 + static_cast<std::size_t>(slot_count)) + (keeps_average ? 1 : 0);
  return segments.padded_count() * sizeof(float) * arrays;
}

}  // namespace tg::daemon

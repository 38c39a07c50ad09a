#include "engine/segment.h"

#include <algorithm>
#include <bit>

#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::engine {
namespace {

// FNV-1a over the fields' bytes, little-endian; each text ends with its length so that fields cannot run together.
class FieldHash {
 public:
  void number(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<unsigned char>(value >> (8 * byte)));
  }
  void text(const std::string& value) {
    for (const char c : value) mix(static_cast<unsigned char>(c));
    number(value.size());
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::size_t elements_of(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    TG_CHECK(extent > 0, extent);
    count *= static_cast<std::size_t>(extent);
  }
  return count;
}

}  // namespace

std::size_t Segment::padded_count() const { return kernels::padded(element_count); }

SegmentTable::SegmentTable(std::vector<Segment> segments) : segments_(std::move(segments)) {
  for (Segment& segment : segments_) {
    segment.element_count = elements_of(segment.shape);
    segment.offset = padded_count_;
    padded_count_ += segment.padded_count();
    parameter_count_ += segment.element_count;
  }
}

std::uint64_t SegmentTable::hash() const {
  FieldHash hash;
  hash.number(segments_.size());
  for (const Segment& segment : segments_) {
    hash.text(segment.name);
    hash.number(segment.shape.size());
    for (const std::int64_t extent : segment.shape) hash.number(static_cast<std::uint64_t>(extent));
    hash.number(std::bit_cast<std::uint64_t>(segment.initial_deviation));
    hash.number(std::bit_cast<std::uint64_t>(segment.initial_value));
    if (segment.initial_bound > 0) hash.number(std::bit_cast<std::uint64_t>(segment.initial_bound));
    hash.number((segment.decays ? 1u : 0u) | (segment.last_layer ? 2u : 0u));
  }
  return hash.value();
}

std::vector<float> without_padding(const SegmentTable& segments, std::span<const float> flat) {
  TG_CHECK(flat.size() == segments.padded_count(), flat.size());
  std::vector<float> elements;
  elements.reserve(segments.parameter_count());
  for (const Segment& segment : segments.segments()) {
    const std::span<const float> real = flat.subspan(segment.offset, segment.element_count);
    elements.insert(elements.end(), real.begin(), real.end());
  }
  return elements;
}

void spread(const SegmentTable& segments, std::span<const float> elements, std::span<float> flat) {
  TG_CHECK(elements.size() == segments.parameter_count() && flat.size() == segments.padded_count(), elements.size());
  for (const Segment& segment : segments.segments()) {
    std::ranges::copy(elements.first(segment.element_count),
                      flat.begin() + static_cast<std::ptrdiff_t>(segment.offset));
    elements = elements.subspan(segment.element_count);
  }
}

}  // namespace tg::engine

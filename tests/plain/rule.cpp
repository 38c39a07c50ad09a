#include "tests/plain/rule.h"

#include <algorithm>
#include <cmath>

namespace tg::plain {

simulation::Random Round::draws(std::size_t rank, std::size_t segment) const {
  simulation::Random mix(seed);
  for (const std::uint64_t part : {std::uint64_t{step}, std::uint64_t{seat(rank)}, std::uint64_t{segment}})
    mix = simulation::Random(mix.word() ^ part);
  return simulation::Random(mix.word());
}

Bits SegmentRule::mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
                       std::span<float> mean) {
  Bits bits;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t begin = segments[s].offset, count = segments[s].padded_count();
    std::vector<std::span<const float>> parts;
    for (const std::span<const float> gradient : gradients) parts.push_back(gradient.subspan(begin, count));
    bits += one(round, s, segments[s], parts, mean.subspan(begin, count));
  }
  return bits;
}

std::span<float> OwnState::of(std::size_t rank, std::size_t segment, std::size_t count) {
  std::vector<float>& values = values_[{rank, segment}];
  values.resize(count);
  return values;
}

std::size_t OwnState::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [place, values] : values_)
    if (place.first == 0) bytes += values.size() * sizeof(float);
  return bytes;
}

void Histogram::add(std::span<const int> values) {
  if (values.empty()) return;
  const auto [least, most] = std::ranges::minmax(values);
  const auto range = static_cast<std::size_t>(most - least) + 1;
  // Equal values come in rows: four counters for each, or every count waits for the one before.
  std::vector<std::uint64_t> counts(4 * range);
  for (std::size_t i = 0; i < values.size(); ++i) ++counts[i % 4 * range + static_cast<std::size_t>(values[i] - least)];
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) counts_[least + static_cast<int>(i % range)] += counts[i];
  total_ += values.size();
}

double Histogram::bits() const {
  double bits = 0;
  for (const auto& [value, count] : counts_) {
    const auto times = static_cast<double>(count);
    bits -= times * std::log2(times / static_cast<double>(total_));
  }
  return bits;
}

double Histogram::share(int value) const {
  const auto found = counts_.find(value);
  return found == counts_.end() ? 0 : static_cast<double>(found->second) / static_cast<double>(total_);
}

double entropy_bits(const Round& round, std::span<const int> values) {
  if (!round.priced) return 0;
  Histogram histogram;
  histogram.add(values);
  return histogram.bits();
}

Bits bits_of(const Round& round, const Codes& codes, std::size_t count) {
  if (!round.priced) return {};
  Bits bits;
  for (const std::vector<int>& one : codes)
    bits.sent += entropy_bits(round, std::span(one).first(count)) / static_cast<double>(codes.size());
  bits.sum = entropy_bits(round, std::span<const int>(sum_of(codes)).first(count));
  return bits;
}

std::vector<int> sum_of(const Codes& codes) {
  std::vector<int> sums(codes.front().size());
  for (const std::vector<int>& one : codes)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  return sums;
}

double largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return most;
}

}  // namespace tg::plain

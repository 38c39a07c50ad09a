// The gradient of a bias: the sum over samples and pixels, by channel. Two launches, in an order that depends on the
// shape alone, whatever the memory's alignment:
//
//   1. A column is a value's place in a sample (channels * pixels of them). The samples are divided into parts; a
//      thread adds a part of a column, in order, and reads next to its neighbours whatever the shape. That is nearly
//      all of the traffic: the sums are at most 1/8 of it (or as much again, if there is only one sample).
//   2. Lanes add a channel's sums, all parts and pixels (lanes.h).
//
// 64 x 64 x 112 x 112: 200,704 threads of four columns read 64 samples each, 206 MB in all, and write 3.2 MB; then 64
// blocks read these.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/lanes.h"
#include "engine/cuda/operators/bodies/pack.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

struct ColumnParts {
  // Enough parts for 2^17 threads of four columns, about as many as a large device holds at a time. Chains of additions
  // stay short: the error of a part's sum is a few roundings.
  static constexpr std::uint64_t kThreadsWanted = 1 << 17, kFewest = 8, kMost = 64;  // samples of a part

  explicit ColumnParts(const Planes& of) : samples(of.samples), columns(of.channels * of.pixels) {
    of_part = samples * columns / kWide / kThreadsWanted;
    of_part = of_part < kFewest ? kFewest : of_part > kMost ? kMost : of_part;
    count = (samples + of_part - 1) / of_part;
  }
  std::uint64_t samples, columns, of_part, count;
};

template <int kWidth>
struct SumColumns {
  SumColumns(const ColumnParts& parts_of, const float* gradient, float* sums)
      : parts(parts_of), by_packs(packs()), dy(gradient), partial(sums) {}

  ColumnParts parts;
  Divider by_packs;
  const float* dy;
  float* partial;  // parts * columns

  bool allows_wide() const { return bodies::allows_wide(dy, partial) && parts.columns % kWide == 0; }
  std::uint64_t packs() const { return (parts.columns + kWidth - 1) / kWidth; }
  std::uint64_t threads() const { return parts.count * packs(); }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts part = by_packs(thread);
    const std::uint64_t column = std::uint64_t{part.remainder} * kWidth, first = part.quotient * parts.of_part;
    const std::uint64_t end = first + parts.of_part, last = end < parts.samples ? end : parts.samples;
    const float* from = dy + first * parts.columns + column;
    Pack<float, kWidth> sum = load<kWidth>(from);
    for (std::uint64_t sample = first + 1; sample < last; ++sample) {
      from += parts.columns;
      const Pack<float, kWidth> values = load<kWidth>(from);
      for (int e = 0; e < kWidth; ++e) sum.at[e] += values.at[e];
    }
    store(partial + part.quotient * parts.columns + column, sum);
  }
};

struct SumChannels {
  using Cell = float;

  SumChannels(const Planes& of, const float* sums, float* to)
      : parts(of),
        lanes(Lanes::of(parts.count * of.pixels, 16, 0)),
        channels(of.channels),
        pixels(of.pixels),
        by_pixels(of.pixels),
        partial(sums),
        gradient(to) {}

  ColumnParts parts;
  Lanes lanes;
  std::uint64_t channels, pixels;
  Divider by_pixels;
  const float* partial;
  float* gradient;

  std::uint64_t blocks() const { return lanes.blocks(channels); }
  int steps() const { return lanes.folds + 2; }
  TG_HOST_DEVICE void step(int step, std::uint64_t block, int thread, Cell* cells) const {
    const std::uint64_t channel = lanes.sum_of(block, thread);
    if (step == 0) {
      cells[thread] = channel < channels ? lane_sum(channel, lanes.lane(thread)) : 0;
    } else if (step <= lanes.folds) {
      lanes.fold(step - 1, thread, cells, [](float& to, const float& from) { to += from; });
    } else if (lanes.lane(thread) == 0 && channel < channels) {
      gradient[channel] = cells[thread];
    }
  }

 private:
  TG_HOST_DEVICE float lane_sum(std::uint64_t channel, int lane) const {
    const float* const from = partial + channel * pixels;
    const std::uint64_t items = parts.count * pixels;
    float sum = 0;
    for (auto i = static_cast<std::uint64_t>(lane); i < items; i += static_cast<std::uint64_t>(lanes.count)) {
      const Divider::Parts part = by_pixels(i);
      sum += from[part.quotient * parts.columns + part.remainder];
    }
    return sum;
  }
};

}  // namespace tg::engine::cuda::bodies

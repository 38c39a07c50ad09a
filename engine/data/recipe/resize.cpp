#include "engine/data/recipe/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tg::engine {
namespace {

constexpr int kBits = 22;  // bits of a weight; with 8 for the byte and 2 to spare they make 32
constexpr std::int32_t kHalf = 1 << (kBits - 1);

// For each output along an axis: the inputs that it takes, and their weights.
struct Axis {
  struct Output {
    int first = 0, count = 0;
    std::size_t weights = 0;  // index of the first weight
  };
  std::vector<Output> outputs;
  std::vector<std::int32_t> weights;

  Axis(int input_size, double start, double length, int output_size, int first, int count) {
    const double scale = length / output_size, reach = std::max(scale, 1.0), share = 1.0 / reach;
    std::vector<double> exact;
    for (int o = first; o < first + count; ++o) {
      const double centre = start + (o + 0.5) * scale;
      const int from = std::max(static_cast<int>(std::floor(centre - reach + 0.5)), 0);
      const int to = std::min(static_cast<int>(std::floor(centre + reach + 0.5)), input_size);
      exact.clear();
      double sum = 0;
      for (int k = from; k < to; ++k) {
        const double distance = (k - centre + 0.5) * share;
        exact.push_back(std::max(0.0, 1.0 - (distance < 0 ? -distance : distance)));
        sum += exact.back();
      }
      outputs.push_back({from, static_cast<int>(exact.size()), weights.size()});
      for (const double weight : exact)
        weights.push_back(
            static_cast<std::int32_t>(std::floor(0.5 + (sum != 0 ? weight / sum : weight) * (1 << kBits))));
    }
  }
};

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::min(sum >> kBits, 255)); }

// Resizes one channel of a row; inputs are `column` apart, outputs `step` apart.
void narrow_channel(const std::uint8_t* row, std::ptrdiff_t column, const Axis& axis, int step, std::uint8_t* out) {
  for (const Axis::Output& output : axis.outputs) {
    const std::uint8_t* at = row + output.first * column;
    const std::int32_t* weight = axis.weights.data() + output.weights;
    std::int32_t sum = kHalf;
    for (int t = 0; t < output.count; ++t, at += column) sum += *at * weight[t];
    *out = to_byte(sum);
    out += step;
  }
}

// Resizes three channels that lie next to each other.
void narrow_colours(const std::uint8_t* row, std::ptrdiff_t column, const Axis& axis, std::uint8_t* out) {
  for (const Axis::Output& output : axis.outputs) {
    const std::uint8_t* at = row + output.first * column;
    const std::int32_t* weight = axis.weights.data() + output.weights;
    std::int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (int t = 0; t < output.count; ++t, at += column) {
      red += at[0] * weight[t];
      green += at[1] * weight[t];
      blue += at[2] * weight[t];
    }
    out[0] = to_byte(red);
    out[1] = to_byte(green);
    out[2] = to_byte(blue);
    out += 3;
  }
}

}  // namespace

void resize(const PictureView& in, const Part& part, const Target& target, Picture& out,
            std::vector<std::uint8_t>& scratch) {
  out.shape(in.channels, target.rows, target.columns);
  if (target.rows == 0 || target.columns == 0) return;
  const Axis across(in.width, part.left, part.width, target.width, target.left, target.columns);
  const Axis down(in.height, part.top, part.height, target.height, target.top, target.rows);
  const int first = down.outputs.front().first, last = down.outputs.back().first + down.outputs.back().count;
  const std::size_t line = static_cast<std::size_t>(target.columns) * static_cast<std::size_t>(in.channels);
  scratch.resize(static_cast<std::size_t>(last - first) * line);
  for (int y = first; y < last; ++y) {
    std::uint8_t* const narrow = scratch.data() + static_cast<std::size_t>(y - first) * line;
    if (in.channels == 3 && in.plane == 1) {
      narrow_colours(in.line(0, y), in.column, across, narrow);
    } else {
      for (int c = 0; c < in.channels; ++c) narrow_channel(in.line(c, y), in.column, across, in.channels, narrow + c);
    }
  }
  std::vector<std::int32_t> sums(line);
  for (int y = 0; y < target.rows; ++y) {
    const Axis::Output& output = down.outputs[static_cast<std::size_t>(y)];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int t = 0; t < output.count; ++t) {
      const std::uint8_t* const from = scratch.data() + static_cast<std::size_t>(output.first - first + t) * line;
      const std::int32_t weight = down.weights[output.weights + static_cast<std::size_t>(t)];
      for (std::size_t i = 0; i < line; ++i) sums[i] += from[i] * weight;
    }
    std::uint8_t* const to = out.pixels.data() + static_cast<std::size_t>(y) * line;
    for (std::size_t i = 0; i < line; ++i) to[i] = to_byte(sums[i]);
  }
}

}  // namespace tg::engine

// One output for each input, kWide side by side in a thread if the memory is aligned for it: only the memory's speed
// counts. An operation has run<kWidth>(i), which computes the values from i to below i + kWidth, and allows_wide().
// A value that is not above 0 is 0 after a relu, NaN included, as on the CPU.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/bodies/pack.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

template <int kWidth, class Operation>
struct Each {
  Operation operation;
  std::uint64_t count;

  std::uint64_t threads() const { return (count + kWidth - 1) / kWidth; }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    std::uint64_t i = thread * kWidth;
    if (i + kWidth <= count) {
      operation.template run<kWidth>(i);
    } else {
      for (; i < count; ++i) operation.template run<1>(i);
    }
  }
};

TG_HOST_DEVICE inline float positive(float x) { return x > 0 ? x : 0.0F; }

struct Relu {
  const float* x;
  float* y;

  bool allows_wide() const { return bodies::allows_wide(x, y); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    Pack<float, kWidth> values = load<kWidth>(x + i);
    for (float& value : values.at) value = positive(value);
    store(y + i, values);
  }
};

struct ReluGradient {
  const float *y, *dy;
  float* dx;

  bool allows_wide() const { return bodies::allows_wide(y, dy, dx); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    const Pack<float, kWidth> values = load<kWidth>(y + i);
    Pack<float, kWidth> gradient = load<kWidth>(dy + i);
    for (int e = 0; e < kWidth; ++e) gradient.at[e] = values.at[e] > 0 ? gradient.at[e] : 0.0F;
    store(dx + i, gradient);
  }
};

struct ReluSigns {
  const float* x;
  float* y;
  std::uint8_t* signs;

  bool allows_wide() const { return bodies::allows_wide(x, y, signs); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    Pack<float, kWidth> values = load<kWidth>(x + i);
    Pack<std::uint8_t, kWidth> kept;
    for (int e = 0; e < kWidth; ++e) {
      kept.at[e] = values.at[e] > 0 ? 1 : 0;
      values.at[e] = positive(values.at[e]);
    }
    store(y + i, values);
    store(signs + i, kept);
  }
};

struct ReluGradientSigns {
  const std::uint8_t* signs;
  const float* dy;
  float* dx;

  bool allows_wide() const { return bodies::allows_wide(signs, dy, dx); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    const Pack<std::uint8_t, kWidth> kept = load<kWidth>(signs + i);
    Pack<float, kWidth> gradient = load<kWidth>(dy + i);
    for (int e = 0; e < kWidth; ++e) gradient.at[e] = kept.at[e] != 0 ? gradient.at[e] : 0.0F;
    store(dx + i, gradient);
  }
};

struct Add {
  const float *a, *b;
  float* y;
  bool relu;

  bool allows_wide() const { return bodies::allows_wide(a, b, y); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    Pack<float, kWidth> sum = load<kWidth>(a + i);
    const Pack<float, kWidth> other = load<kWidth>(b + i);
    for (int e = 0; e < kWidth; ++e) {
      sum.at[e] += other.at[e];
      if (relu) sum.at[e] = positive(sum.at[e]);
    }
    store(y + i, sum);
  }
};

struct AddBias {
  AddBias(const Planes& of, const float* images, const float* added, bool with_relu, float* to)
      : by_pixels(of.pixels),
        by_channels(of.channels),
        pixels(static_cast<std::uint32_t>(of.pixels)),
        channels(static_cast<std::uint32_t>(of.channels)),
        x(images),
        bias(added),
        y(to),
        relu(with_relu) {}

  Divider by_pixels, by_channels;
  std::uint32_t pixels, channels;
  const float *x, *bias;
  float* y;
  bool relu;

  bool allows_wide() const { return bodies::allows_wide(x, y); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    Pack<float, kWidth> values = load<kWidth>(x + i);
    if (bias != nullptr) {
      const Divider::Parts plane = by_pixels(i);
      std::uint32_t pixel = plane.remainder, channel = by_channels(plane.quotient).remainder;
      for (float& value : values.at) {
        value += bias[channel];
        if (++pixel == pixels) {
          pixel = 0;
          if (++channel == channels) channel = 0;
        }
      }
    }
    if (relu)
      for (float& value : values.at) value = positive(value);
    store(y + i, values);
  }
};

// Rows of `count` floats (a Divider's divisor), `from_stride` and `to_stride` apart: to = from, or to += from.
struct CopyRows {
  CopyRows(std::size_t count, const float* source, std::size_t source_stride, float* destination,
           std::size_t destination_stride, bool adds)
      : by_count(count),
        row_count(count),
        from_stride(source_stride),
        to_stride(destination_stride),
        from(source),
        to(destination),
        accumulates(adds) {}

  Divider by_count;
  std::uint64_t row_count, from_stride, to_stride;
  const float* from;
  float* to;
  bool accumulates;

  // No pack reaches from one row into the next.
  bool allows_wide() const {
    return bodies::allows_wide(from, to) && row_count % kWide == 0 && from_stride % kWide == 0 &&
           to_stride % kWide == 0;
  }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    const Divider::Parts row = by_count(i);
    Pack<float, kWidth> values = load<kWidth>(from + row.quotient * from_stride + row.remainder);
    float* const at = to + row.quotient * to_stride + row.remainder;
    if (accumulates) {
      const Pack<float, kWidth> old = load<kWidth>(at);
      for (int e = 0; e < kWidth; ++e) values.at[e] = old.at[e] + values.at[e];
    }
    store(at, values);
  }
};

}  // namespace tg::engine::cuda::bodies

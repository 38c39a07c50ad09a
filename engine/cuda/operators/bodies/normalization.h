// Local response normalization over the channels of a pixel; formulas, and the order of every addition, of
// engine/cpu/lrn/lrn.h, so the bits are the CPU's: a window's terms are added from its lowest channel up, and a channel
// outside of the group counts as a 0. Threads lie side by side over pixels.
//
// For the radii that networks use, a thread goes up a run of channels and holds the windows' values in registers: it
// reads x once (and the run's surroundings, which its neighbours read too), sums each window anew and keeps no running
// sum. The length of a run changes no bit. Other radii have one thread for each output, which computes all scales of
// its window again.
#pragma once

#include <cmath>

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// The place of a thread's channels.
struct GroupOfPixel {
  std::uint64_t base;  // index of the group's first channel at this pixel
  int first, last;     // channels of the group
};

// Threads are numbered (sample, group, run of channels, pixel), the pixels side by side.
class ChannelRuns {
 public:
  ChannelRuns(const NormalizationShape& of, int run_length)
      : groups_(static_cast<std::uint64_t>(of.samples) * static_cast<std::uint64_t>(of.layer.groups)),
        pixels_(of.pixels),
        channels_(of.channels / of.layer.groups),
        length_(run_length),
        runs_((channels_ + run_length - 1) / run_length),
        by_pixels_(static_cast<std::uint64_t>(pixels_)),
        by_runs_(static_cast<std::uint64_t>(runs_)) {}

  std::uint64_t threads() const {
    return groups_ * static_cast<std::uint64_t>(runs_) * static_cast<std::uint64_t>(pixels_);
  }
  TG_HOST_DEVICE GroupOfPixel operator()(std::uint64_t thread) const {
    const Divider::Parts run = by_pixels_(thread);
    const Divider::Parts group = by_runs_(run.quotient);
    const int first = static_cast<int>(group.remainder) * length_, end = first + length_;
    return {
        group.quotient * static_cast<std::uint64_t>(channels_) * static_cast<std::uint64_t>(pixels_) + run.remainder,
        first, end < channels_ ? end : channels_};
  }
  TG_HOST_DEVICE bool has(int channel) const { return channel >= 0 && channel < channels_; }
  // The index of a channel at the pixel.
  TG_HOST_DEVICE std::uint64_t at(const GroupOfPixel& group, int channel) const {
    return group.base + static_cast<std::uint64_t>(channel) * static_cast<std::uint64_t>(pixels_);
  }

 private:
  std::uint64_t groups_;
  int pixels_, channels_, length_, runs_;  // channels of a group
  Divider by_pixels_, by_runs_;
};

inline constexpr int kRun = 16;  // channels: the surroundings of radius 4 make the reading 3/2, and twice backward

// 1 / sqrt(s).
TG_HOST_DEVICE inline float root_of(const LocalResponseNormalization& layer, float sum) {
  return 1.0F / sqrtf(layer.bias + layer.alpha * sum);
}

// The values of neighbouring channels, the lowest first; only whole loops touch it, so that it stays in registers.
template <int kCount>
struct Channels {
  float at[kCount];

  TG_HOST_DEVICE void push(float value) {
    for (int k = 0; k + 1 < kCount; ++k) at[k] = at[k + 1];
    at[kCount - 1] = value;
  }
  TG_HOST_DEVICE float sum() const {
    float sum = at[0];
    for (int k = 1; k < kCount; ++k) sum += at[k];
    return sum;
  }
  TG_HOST_DEVICE float sum_of_squares() const {
    float sum = at[0] * at[0];
    for (int k = 1; k < kCount; ++k) sum += at[k] * at[k];
    return sum;
  }
};

template <int kRadius>
struct Normalization {
  Normalization(const NormalizationShape& of, const float* images, float* to)
      : runs(of, kRun), layer(of.layer), x(images), y(to) {}

  ChannelRuns runs;
  LocalResponseNormalization layer;
  const float* x;
  float* y;

  std::uint64_t threads() const { return runs.threads(); }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const float* __restrict const from = x;
    float* __restrict const to = y;
    const GroupOfPixel group = runs(thread);
    Channels<2 * kRadius + 1> window = {};
    for (int k = -kRadius; k < kRadius; ++k) {
      const int c = group.first + k;
      window.push(runs.has(c) ? from[runs.at(group, c)] : 0);
    }
    for (int c = group.first; c < group.last; ++c) {
      window.push(runs.has(c + kRadius) ? from[runs.at(group, c + kRadius)] : 0);
      const float root = root_of(layer, window.sum_of_squares());
      to[runs.at(group, c)] = window.at[kRadius] * (root * sqrtf(root));
    }
  }
};

template <int kRadius>
struct NormalizationGradient {
  NormalizationGradient(const NormalizationShape& of, const float* images, const float* gradient, float* to)
      : runs(of, kRun), layer(of.layer), x(images), dy(gradient), dx(to) {}

  ChannelRuns runs;
  LocalResponseNormalization layer;
  const float *x, *dy;
  float* dx;

  std::uint64_t threads() const { return runs.threads(); }
  // At channel k the window of x is complete around k, and that of the terms around k - radius.
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const float* __restrict const from = x, * __restrict const gradient = dy;
    float* __restrict const to = dx;
    const GroupOfPixel group = runs(thread);
    const float factor = 1.5F * layer.alpha;
    Channels<2 *kRadius + 1> values = {}, terms = {};
    Channels<kRadius + 1> scaled = {};  // dy * s^-3/4
    for (int k = -2 * kRadius; k < 0; ++k) {
      const int c = group.first + k;
      values.push(runs.has(c) ? from[runs.at(group, c)] : 0);
    }
    for (int k = group.first - kRadius; k < group.last + kRadius; ++k) {
      values.push(runs.has(k + kRadius) ? from[runs.at(group, k + kRadius)] : 0);
      float term = 0, carried = 0;
      if (runs.has(k)) {
        const float root = root_of(layer, values.sum_of_squares()), scale = root * sqrtf(root);
        const float incoming = gradient[runs.at(group, k)];
        carried = incoming * scale;
        term = incoming * values.at[kRadius] * scale * (root * root);
      }
      terms.push(term);
      scaled.push(carried);
      const int c = k - kRadius;
      if (c >= group.first) to[runs.at(group, c)] = scaled.at[0] - factor * values.at[0] * terms.sum();
    }
  }
};

// Any radius.
struct AnyNormalization {
  AnyNormalization(const NormalizationShape& of, const float* images) : runs(of, 1), layer(of.layer), x(images) {}

  ChannelRuns runs;
  LocalResponseNormalization layer;
  const float* x;

  std::uint64_t threads() const { return runs.threads(); }
  // Sums the terms of a channel's window.
  template <class Term>
  TG_HOST_DEVICE float window_sum(int channel, const Term& term) const {
    float sum = 0;
    for (int k = channel - layer.radius; k <= channel + layer.radius; ++k)
      if (runs.has(k)) sum += term(k);
    return sum;
  }
  TG_HOST_DEVICE float value(const GroupOfPixel& group, int channel) const { return x[runs.at(group, channel)]; }
  TG_HOST_DEVICE float root(const GroupOfPixel& group, int channel) const {
    return root_of(layer, window_sum(channel, [&](int k) {
                     const float each = value(group, k);
                     return each * each;
                   }));
  }
};

struct AnyNormalizationForward : AnyNormalization {
  AnyNormalizationForward(const NormalizationShape& of, const float* images, float* to)
      : AnyNormalization(of, images), y(to) {}
  float* y;

  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const GroupOfPixel group = runs(thread);
    const float root_here = root(group, group.first);
    y[runs.at(group, group.first)] = value(group, group.first) * (root_here * sqrtf(root_here));
  }
};

struct AnyNormalizationGradient : AnyNormalization {
  AnyNormalizationGradient(const NormalizationShape& of, const float* images, const float* gradient, float* to)
      : AnyNormalization(of, images), dy(gradient), dx(to) {}
  const float* dy;
  float* dx;

  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const GroupOfPixel group = runs(thread);
    const int c = group.first;
    const float sum = window_sum(c, [&](int k) {
      const float each = root(group, k);
      return dy[runs.at(group, k)] * value(group, k) * (each * sqrtf(each)) * (each * each);
    });
    const float root_here = root(group, c), factor = 1.5F * layer.alpha;
    const std::uint64_t at = runs.at(group, c);
    dx[at] = dy[at] * (root_here * sqrtf(root_here)) - factor * value(group, c) * sum;
  }
};

}  // namespace tg::engine::cuda::bodies

// The body of every variant (lrn.h), compiled once for each instruction set: kBytes is the size of its registers, and
// the compiler vectorizes the other loops. Internal linkage and no function of another header, so that no object of
// another instruction set can end up with this code.
#pragma once

#include "engine/cpu/lrn/block.h"

namespace tg::engine::cpu::lrn {
namespace {

template <int kBytes>
struct Register {
  typedef float Floats __attribute__((vector_size(kBytes), aligned(sizeof(float)), may_alias));
  static constexpr std::size_t kWidth = kBytes / sizeof(float);
};

// Computes sums[c] = terms[c] + ... + terms[c + 2 * radius], in this order, for all channels up to the end of their
// last line.
template <int kBytes>
inline void window_sums(const Window& of, const float* terms, float* __restrict sums) {
  using Floats = typename Register<kBytes>::Floats;
  for (std::size_t c = 0; c < of.channels; c += Register<kBytes>::kWidth) {
    Floats sum = *reinterpret_cast<const Floats*>(terms + c);
    for (std::size_t k = 1; k <= 2 * of.radius; ++k) sum += *reinterpret_cast<const Floats*>(terms + c + k);
    *reinterpret_cast<Floats*>(sums + c) = sum;
  }
}

inline void square(const Window& of, const float* __restrict x, float* __restrict squares) {
  for (std::size_t c = 0; c < of.channels; ++c) squares[of.radius + c] = x[c] * x[c];
}

inline void scale(const Window& of, const float* __restrict sums, const float* __restrict x, float* __restrict y) {
  for (std::size_t c = 0; c < of.channels; ++c) {
    const float root = 1.0F / __builtin_sqrtf(of.bias + of.alpha * sums[c]);
    y[c] = x[c] * (root * __builtin_sqrtf(root));
  }
}

// scales = s^-3/4, terms = dy * x * s^-7/4.
inline void prepare(const Window& of, const float* __restrict sums, const float* __restrict x,
                    const float* __restrict dy, float* __restrict scales, float* __restrict terms) {
  for (std::size_t c = 0; c < of.channels; ++c) {
    const float root = 1.0F / __builtin_sqrtf(of.bias + of.alpha * sums[c]);
    scales[c] = root * __builtin_sqrtf(root);
    terms[of.radius + c] = dy[c] * x[c] * scales[c] * (root * root);
  }
}

inline void combine(const Window& of, const float* __restrict sums, const float* __restrict x,
                    const float* __restrict dy, const float* __restrict scales, float* __restrict dx) {
  const float factor = 1.5F * of.alpha;
  for (std::size_t c = 0; c < of.channels; ++c) dx[c] = dy[c] * scales[c] - factor * x[c] * sums[c];
}

// Squares several rows before summing them, or the sums would wait for stores that are still in the processor.
template <int kBytes>
void forward_rows(const Window& of, const ForwardRows& rows, float* scratch) {
  const Block block(of);
  float *const squares = scratch, *const sums = squares + block.array;
  __builtin_memset(squares, 0, block.array * sizeof(float));
  for (std::size_t first = 0; first < rows.count; first += block.rows) {
    const std::size_t count = rows.count - first < block.rows ? rows.count - first : block.rows;
    const float* const x = rows.x + first * of.channels;
    float* const y = rows.y + first * of.channels;
    for (std::size_t row = 0; row < count; ++row) square(of, x + row * of.channels, squares + row * block.stride);
    for (std::size_t row = 0; row < count; ++row) {
      window_sums<kBytes>(of, squares + row * block.stride, sums);
      scale(of, sums, x + row * of.channels, y + row * of.channels);
    }
  }
}

template <int kBytes>
void backward_rows(const Window& of, const BackwardRows& rows, float* scratch) {
  const Block block(of);
  float *const squares = scratch, *const terms = squares + block.array;
  float *const scales = terms + block.array, *const sums = scales + block.array;
  __builtin_memset(squares, 0, 2 * block.array * sizeof(float));  // squares and terms
  for (std::size_t first = 0; first < rows.count; first += block.rows) {
    const std::size_t count = rows.count - first < block.rows ? rows.count - first : block.rows;
    const float *const x = rows.x + first * of.channels, *const dy = rows.dy + first * of.channels;
    float* const dx = rows.dx + first * of.channels;
    for (std::size_t row = 0; row < count; ++row) square(of, x + row * of.channels, squares + row * block.stride);
    for (std::size_t row = 0; row < count; ++row) {
      const std::size_t at = row * of.channels, in = row * block.stride;
      window_sums<kBytes>(of, squares + in, sums);
      prepare(of, sums, x + at, dy + at, scales + in, terms + in);
    }
    for (std::size_t row = 0; row < count; ++row) {
      const std::size_t at = row * of.channels, in = row * block.stride;
      window_sums<kBytes>(of, terms + in, sums);
      combine(of, sums, x + at, dy + at, scales + in, dx + at);
    }
  }
}

}  // namespace
}  // namespace tg::engine::cpu::lrn

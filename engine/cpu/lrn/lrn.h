// Local response normalization (Krizhevsky et al., NIPS 2012) over rows of channels: a row is one pixel of an NHWC
// image.
//
//   forward   s_c = bias + alpha * sum of x_k^2 over |k - c| <= radius,  y_c = x_c * s_c^-3/4
//   backward  dx_c = dy_c * s_c^-3/4 - 3/2 * alpha * x_c * (sum of dy_k * x_k * s_k^-7/4 over the same window)
//
// oneDNN 2.6 is fast on NHWC only with AVX-512. The exponent is fixed: powers of 1/4 are square roots, which have one
// right result, so that all variants give the same bits. Nothing is kept from forward to backward, which computes s
// again from x. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace tg::engine::cpu::lrn {

struct Window {
  std::size_t channels, radius;
  float bias, alpha;
};

// `count` rows of window.channels values each, one after another, unaligned. Outputs overlap nothing.
struct ForwardRows {
  std::size_t count;
  const float* x;
  float* y;
};
struct BackwardRows {
  std::size_t count;
  const float *x, *dy;
  float* dx;
};

// scratch: scratch_floats(window) floats for this call alone.
struct Kernels {
  const char* name;  // "scalar", "avx2", "avx512"
  void (*forward)(const Window& window, const ForwardRows& rows, float* scratch);
  void (*backward)(const Window& window, const BackwardRows& rows, float* scratch);
};

std::size_t scratch_floats(const Window& window);

extern const Kernels kScalar, kAvx2, kAvx512;
// The variants that this processor can run, best first; the last is scalar.
const std::vector<const Kernels*>& available();

}  // namespace tg::engine::cpu::lrn

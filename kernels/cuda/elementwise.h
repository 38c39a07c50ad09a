// The elementwise kernels of host_kernels.h, four elements a thread: n is the thread's number, and threads past the
// last element do nothing.
#pragma once

#include <cstddef>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"

namespace tg::kernels::cuda {

TG_HOST_DEVICE inline void add_scaled_four(const float* parameters, float factor, float* gradient, std::size_t elements,
                                           std::size_t n) {
  const std::size_t first = n * kVector;
  if (first >= elements) return;
  const Floats4 w = load(parameters + first);
  Floats4 g = load(gradient + first);
  TG_UNROLL
  for (int e = 0; e < 4; ++e) g.at[e] = g.at[e] + factor * w.at[e];
  store(g, gradient + first);
}

TG_HOST_DEVICE inline void average_four(const float* parameters, float rate, float* average, std::size_t elements,
                                        std::size_t n) {
  const std::size_t first = n * kVector;
  if (first >= elements) return;
  const Floats4 w = load(parameters + first);
  Floats4 mean = load(average + first);
  TG_UNROLL
  for (int e = 0; e < 4; ++e) mean.at[e] = canonical(mean.at[e] + rate * (w.at[e] - mean.at[e]));
  store(mean, average + first);
}

}  // namespace tg::kernels::cuda

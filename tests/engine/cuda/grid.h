// The grids of engine/cuda/operators on the host, thread by thread: last thread first, so that a thread that reads what
// another one writes is seen.
#pragma once

#include <limits>
#include <random>
#include <vector>

#include "engine/cuda/operators/bodies/grid.h"

namespace tg::engine::cuda {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                       kNan = std::numeric_limits<float>::quiet_NaN();

using Values = std::vector<float>;  // exactly as long as asked: a sanitizer sees an access behind the end

template <class Body>
void run(const Body& body) {
  const std::uint64_t threads = body.threads();
  for (std::uint64_t thread = blocks_of(threads) * kThreads; thread-- > 0;)
    if (thread < threads) body(thread);
}

template <class Body>
void run_steps(const Body& body) {
  for (std::uint64_t block = body.blocks(); block-- > 0;) {
    std::vector<typename Body::Cell> cells(kThreads);
    for (int step = 0; step < body.steps(); ++step)
      for (int thread = kThreads; thread-- > 0;) body.step(step, block, thread, cells.data());
  }
}

inline Values random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> value(-2.0F, 2.0F);
  Values values(count);
  for (float& each : values) each = value(random);
  return values;
}

// Few different values, 0 among them: many are equal.
inline Values coarse_values(std::size_t count, std::uint64_t seed) {
  Values values = random_values(count, seed);
  for (float& each : values) each = static_cast<float>(static_cast<int>(each));
  return values;
}

}  // namespace tg::engine::cuda

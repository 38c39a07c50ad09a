// The seeds of tests that draw. A failure prints TGD_SEED=N, and TGD_SEED=N in the environment runs that one again.
// TGD_SEEDS=N: so many, whatever the test would draw.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tg {

inline std::optional<std::uint64_t> seed_asked_for() {
  const char* const one = std::getenv("TGD_SEED");
  return one == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(one, nullptr, 10));
}

// 1 to count: the same in every run.
inline std::vector<std::uint64_t> seeds(std::size_t count) {
  if (const auto one = seed_asked_for()) return {*one};
  if (const char* const many = std::getenv("TGD_SEEDS"); many != nullptr) count = std::strtoull(many, nullptr, 10);
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

// Another one in every run.
inline std::uint64_t fresh_seed() { return seed_asked_for().value_or(std::random_device{}()); }

}  // namespace tg

// Names the seed in every failure of this scope.
#define TG_SEED(seed) SCOPED_TRACE("TGD_SEED=" + std::to_string(seed))

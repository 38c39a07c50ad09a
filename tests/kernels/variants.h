// One assertion, every variant: a test class whose parameter is a variant's name. A variant that this processor cannot
// run is reported as skipped, with the reason. Also the data that several tests share.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "kernels/sample_update.h"
#include "tests/seeds.h"

namespace tg::kernels::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline constexpr std::array<std::string_view, 3> kVariantNames = {"scalar", "avx2", "avx512"};

// No block, one, an odd number of blocks, part of a statistics fold, several folds.
inline constexpr std::array<std::size_t, 7> kLengths = {0, 512, 1024, 1536, 512 * 5, 512 * 9, 512 * 33};

inline const Kernels* find_variant(std::string_view name) {
  for (const Kernels* const kernels : available()) {
    if (kernels->name == name) return kernels;
  }
  return nullptr;
}

inline const Kernels& scalar_variant() { return *find_variant("scalar"); }

class EveryVariant : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    kernels_ = find_variant(GetParam());
    if (kernels_ == nullptr) GTEST_SKIP() << "this processor lacks the instructions of " << GetParam();
  }
  const Kernels& kernels() const { return *kernels_; }

 private:
  const Kernels* kernels_ = nullptr;
};

inline std::string variant_name(const testing::TestParamInfo<std::string_view>& info) {
  return std::string(info.param);
}

struct PlaneArrays {
  explicit PlaneArrays(std::size_t elements) : nonzero(elements / kWordBits), negative(elements / kWordBits) {}
  Planes planes() { return {nonzero.span(), negative.span()}; }
  ConstPlanes view() const { return {nonzero.span(), negative.span()}; }
  int code(std::size_t i) const {
    const std::uint64_t bit = std::uint64_t{1} << i % kWordBits;
    if ((nonzero[i / kWordBits] & bit) == 0) return 0;
    return (negative[i / kWordBits] & bit) != 0 ? -1 : 1;
  }
  AlignedArray<std::uint64_t> nonzero, negative;
};

struct State {
  explicit State(std::size_t elements) : parameters(elements), slot0(elements), slot1(elements) {}
  StateSpan span() { return {parameters.span(), slot0.span(), slot1.span()}; }
  ConstStateSpan view() const { return {parameters.span(), slot0.span(), slot1.span()}; }
  AlignedArray<float> parameters, slot0, slot1;
};

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
template <class T>
bool same_bytes(const AlignedArray<T>& a, const AlignedArray<T>& b) {
  return same_bytes(a.span(), b.span());
}
inline bool same_bytes(const PlaneArrays& a, const PlaneArrays& b) {
  return same_bytes(a.nonzero, b.nonzero) && same_bytes(a.negative, b.negative);
}
inline bool same_bytes(const State& a, const State& b) {
  return same_bytes(a.parameters, b.parameters) && same_bytes(a.slot0, b.slot0) && same_bytes(a.slot1, b.slot1);
}

// Gaussian; the last `padding` elements are 0, as those of a segment whose size is no multiple of kBlock.
inline AlignedArray<float> gaussian(std::size_t elements, std::uint64_t seed, float sigma = 1,
                                    std::size_t padding = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, sigma);
  AlignedArray<float> values(elements);
  for (std::size_t i = 0; i + padding < elements; ++i) values[i] = normal(random);
  return values;
}

// Codes with the given share of nonzero ones.
inline PlaneArrays random_codes(std::size_t elements, std::uint64_t seed, double nonzero_share) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution nonzero(nonzero_share);
  PlaneArrays codes(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    if (!nonzero(random)) continue;
    codes.nonzero[i / kWordBits] |= std::uint64_t{1} << i % kWordBits;
    codes.negative[i / kWordBits] |= (random() & 1) << i % kWordBits;
  }
  return codes;
}

}  // namespace tg::kernels::test

#define TG_TEST_EVERY_VARIANT(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(::tg::kernels::test::kVariantNames), \
                           ::tg::kernels::test::variant_name)

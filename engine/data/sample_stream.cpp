#include <cstdint>
#include <numeric>
#include <utility>

#include "engine/data/draws.h"
#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {

SampleStream::SampleStream(std::uint64_t seed, std::size_t sample_count) : seed_(seed), count_(sample_count) {
  TG_CHECK(sample_count > 0 && sample_count <= UINT32_MAX, sample_count);
}

std::size_t SampleStream::sample(std::uint64_t position) {
  const std::uint64_t epoch = position / count_;
  if (epoch != epoch_ || permutation_.empty()) {
    permutation_.resize(count_);
    std::iota(permutation_.begin(), permutation_.end(), 0u);
    Draws draws(seed_, DrawDomain::kShuffle, epoch);
    for (std::uint32_t left = static_cast<std::uint32_t>(count_); left > 1; --left) {
      std::swap(permutation_[left - 1], permutation_[draws.below(left)]);
    }
    epoch_ = epoch;
  }
  return permutation_[position % count_];
}

}  // namespace tg::engine

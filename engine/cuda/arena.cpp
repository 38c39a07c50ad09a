#include "engine/cuda/arena.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"

namespace tg::engine::cuda {

std::size_t Arena::add(const Lifetime& lifetime) {
  needs_.push_back({lifetime, 0});
  return needs_.size() - 1;
}

// Sizes are multiples of the alignment, and so are the offsets that place() chooses.
View Arena::view(std::size_t buffer, std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  needs_[buffer].bytes = std::max(needs_[buffer].bytes, whole);
  return {*this, buffer};
}

void Arena::bind(Placement placement, std::byte* memory) {
  TG_CHECK(placement.offsets.size() == needs_.size(), placement.offsets.size(), needs_.size());
  placement_ = std::move(placement);
  memory_ = memory;
}

std::byte* Arena::address(std::size_t buffer) const {
  TG_CHECK(memory_ != nullptr, buffer);
  return memory_ + placement_.offsets[buffer];
}

}  // namespace tg::engine::cuda

// A zeroed, fixed-size array of floats in a memory space: a gradient, or one array of a state. Owns its memory; move
// only. The memory space must outlive it. No thread rules of its own.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/memory_space.h"

namespace tg::kernels {

class MemoryArray {
 public:
  MemoryArray() = default;
  MemoryArray(MemorySpace& space, std::size_t count) {
    if (count == 0) return;
    floats_ = space.allocate(count);
    space_ = &space;
  }
  MemoryArray(MemoryArray&& other) noexcept { swap(other); }
  MemoryArray& operator=(MemoryArray&& other) noexcept {
    MemoryArray(std::move(other)).swap(*this);
    return *this;
  }
  ~MemoryArray() {
    if (space_ != nullptr) space_->release(floats_);
  }

  Floats floats() { return floats_; }
  ConstFloats floats() const { return floats_; }
  std::size_t size() const { return floats_.size(); }

 private:
  void swap(MemoryArray& other) noexcept {
    std::swap(space_, other.space_);
    std::swap(floats_, other.floats_);
  }

  MemorySpace* space_ = nullptr;
  Floats floats_;
};

}  // namespace tg::kernels

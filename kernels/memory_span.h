// A range of floats in a memory space: an address and a number of elements. It owns nothing. No
// element can be read or written through it, and it cannot become a std::span: only the engine and the tensor kernels
// of its memory space (memory_space.h) can use the address. Values; any thread.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/base/check.h"

namespace tg::kernels {

template <class T>
class MemorySpan {
 public:
  MemorySpan() = default;
  MemorySpan(T* address, std::size_t size) : address_(address), size_(size) {}
  template <class U>
  requires(!std::is_const_v<U> && std::is_same_v<T, const U>) MemorySpan(const MemorySpan<U>& other)
      : address_(other.address()), size_(other.size()) {}

  T* address() const { return address_; }
  std::size_t size() const { return size_; }  // elements
  MemorySpan subspan(std::size_t begin, std::size_t count) const {
    TG_CHECK(begin <= size_ && count <= size_ - begin, begin, count, size_);
    return {address_ + begin, count};
  }

 private:
  T* address_ = nullptr;
  std::size_t size_ = 0;
};

using Floats = MemorySpan<float>;
using ConstFloats = MemorySpan<const float>;

}  // namespace tg::kernels

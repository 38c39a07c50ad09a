// A zeroed, 64-byte aligned, fixed-size array on the heap: the memory of every flat array (parameters,
// gradients, planes, sums). Owns its memory; move only. No thread rules of its own.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace tg {

inline constexpr std::size_t kCacheLine = 64;       // bytes
inline constexpr std::size_t kHugePage = 2u << 20;  // bytes

// What so many bytes take here: whole cache lines, or whole huge pages.
inline constexpr std::size_t unit_of(std::size_t bytes) { return bytes >= 2 * kHugePage ? kHugePage : kCacheLine; }
inline constexpr std::size_t whole_bytes(std::size_t bytes) {
  return (bytes + unit_of(bytes) - 1) / unit_of(bytes) * unit_of(bytes);
}

// Memory that starts at a cache line, `whole` bytes of it; release it with std::free. Throws std::bad_alloc. For large
// memory the system is asked for huge pages (it may refuse): with small ones a pass pays for a page walk every 4 KiB.
inline void* allocate_unset(std::size_t bytes, std::size_t& whole) {
  const std::size_t unit = unit_of(bytes);
  whole = whole_bytes(bytes);
  void* const memory = std::aligned_alloc(unit, whole);
  if (memory == nullptr) throw std::bad_alloc();
  if (unit == kHugePage) ::madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}
inline void* allocate_zeroed(std::size_t bytes) {
  std::size_t whole = 0;
  void* const memory = allocate_unset(bytes, whole);
  return std::memset(memory, 0, whole);
}

template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t count) : count_(count) {
    if (count > 0) data_.reset(static_cast<T*>(allocate_zeroed(count * sizeof(T))));
  }

  // For gigabytes, which take seconds: advanced is called after each part, and what it throws passes through.
  AlignedArray(std::size_t count, const std::function<void()>& advanced) : count_(count) {
    constexpr std::size_t kPart = 16 * kHugePage;
    std::size_t whole = 0;
    if (count > 0) data_.reset(static_cast<T*>(allocate_unset(count * sizeof(T), whole)));
    for (std::size_t done = 0; done < whole; done += kPart) {
      std::memset(reinterpret_cast<std::byte*>(data_.get()) + done, 0, std::min(kPart, whole - done));
      if (advanced) advanced();
    }
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data_.get(), count_}; }
  std::span<const T> span() const { return {data_.get(), count_}; }
  T* begin() { return data(); }
  T* end() { return data() + count_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + count_; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

}  // namespace tg

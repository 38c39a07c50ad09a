// Floats in host memory, given by a memory space for frequent copies (MemorySpace::allocate_host) or by anyone else.
// Move only; an array and its parts share the memory, which is freed with the last of them. No thread rules of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "kernels/base/aligned_array.h"
#include "kernels/base/check.h"

namespace tg::kernels {

class HostArray {
 public:
  HostArray() = default;
  HostArray(AlignedArray<float>&& array) : count_(array.size()) {
    const auto owner = std::make_shared<AlignedArray<float>>(std::move(array));
    data_ = {owner, owner->data()};
  }
  HostArray(std::shared_ptr<float> data, std::size_t count) : data_(std::move(data)), count_(count) {}
  HostArray(HostArray&& other) noexcept : data_(std::move(other.data_)), count_(std::exchange(other.count_, 0)) {}
  HostArray& operator=(HostArray&& other) noexcept {
    data_ = std::move(other.data_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  // A part of this array, in the same memory.
  HostArray part(std::size_t first, std::size_t count) const {
    TG_CHECK(first <= count_ && count <= count_ - first, first, count, count_);
    return {{data_, data_.get() + first}, count};
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t i) { return data()[i]; }
  const float& operator[](std::size_t i) const { return data()[i]; }
  std::span<float> span() { return {data(), count_}; }
  std::span<const float> span() const { return {data(), count_}; }
  float* begin() { return data(); }
  float* end() { return data() + count_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + count_; }

 private:
  std::shared_ptr<float> data_;
  std::size_t count_ = 0;
};

}  // namespace tg::kernels

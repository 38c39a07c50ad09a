// A zeroed, fixed-size array of floats in a home: a gradient, or one array of a state. Owns its memory; move only. The
// home must outlive it. No thread rules of its own.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/home.h"

namespace tg::kernels {

class HomeArray {
 public:
  HomeArray() = default;
  HomeArray(Home& home, std::size_t count) {
    if (count == 0) return;
    floats_ = home.allocate(count);
    home_ = &home;
  }
  HomeArray(HomeArray&& other) noexcept { swap(other); }
  HomeArray& operator=(HomeArray&& other) noexcept {
    HomeArray(std::move(other)).swap(*this);
    return *this;
  }
  ~HomeArray() {
    if (home_ != nullptr) home_->release(floats_);
  }

  Floats floats() { return floats_; }
  ConstFloats floats() const { return floats_; }
  std::size_t size() const { return floats_.size(); }

 private:
  void swap(HomeArray& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(floats_, other.floats_);
  }

  Home* home_ = nullptr;
  Floats floats_;
};

}  // namespace tg::kernels

// One block of device memory for all buffers of a network. A buffer is as large as its largest view and lives for some
// slots (plan.h); buffers that never live at the same time may share memory. The places are chosen once, when all
// buffers are known; only then do views point anywhere. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/placement.h"

namespace tg::engine::cuda {

class Arena;
class Library;

// A buffer of an arena, which must outlive it. Empty if no buffer is needed.
class View {
 public:
  View() = default;
  View(const Arena& arena, std::size_t buffer) : arena_(&arena), buffer_(buffer) {}

  explicit operator bool() const { return arena_ != nullptr; }
  std::byte* bytes() const;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(bytes());
  }
  float* floats() const { return as<float>(); }
  std::size_t buffer() const { return buffer_; }

 private:
  const Arena* arena_ = nullptr;
  std::size_t buffer_ = 0;
};

class Arena {
 public:
  explicit Arena(const Library& /*library*/) {}  // the CPU's asks it for views
  Arena(const Arena&) = delete;                  // views point to it
  Arena& operator=(const Arena&) = delete;

  std::size_t add(const Lifetime& lifetime);  // returns the buffer's number
  View view(std::size_t buffer, std::size_t bytes);

  const std::vector<BufferNeed>& needs() const { return needs_; }
  // placement: made from needs(). memory: its bytes on the device, at a multiple of kAlignment; it outlives the views.
  void bind(Placement placement, std::byte* memory);
  std::byte* address(std::size_t buffer) const;

  // Every buffer's alignment in bytes: that of cudaMalloc, and wider than any load of a library.
  static constexpr std::size_t kAlignment = 256;

 private:
  std::vector<BufferNeed> needs_;
  Placement placement_;
  std::byte* memory_ = nullptr;
};

inline std::byte* View::bytes() const { return arena_->address(buffer_); }

}  // namespace tg::engine::cuda

// The memory of frames: blocks in a few sizes, which are reused. A block belongs to one PooledBytes at a time; the last
// handle, on any thread, returns it to the pool's state, which lives as long as any handle. kMaxIdlePoolBytes bounds
// the idle blocks, the exchange's credits bound those in use.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "schema/frame/frame.h"

namespace tg::schema {

struct Block {
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> bytes;  // 64-byte aligned
  std::size_t capacity = 0;
};

struct FramePool::State {
  static constexpr std::size_t kSmallest = 256;  // a size class holds kSmallest * 2^k plus a frame's overhead

  Block acquire(std::size_t bytes);
  void release(Block block);

  mutable std::mutex mutex;
  std::vector<std::vector<Block>> idle;  // by size class
  std::size_t idle_bytes = 0;
  std::size_t used_bytes = 0;
};

class PooledBytes final : public FrameBuffer {
 public:
  PooledBytes(std::shared_ptr<FramePool::State> pool, std::size_t capacity);
  ~PooledBytes() override;
  PooledBytes(const PooledBytes&) = delete;
  PooledBytes& operator=(const PooledBytes&) = delete;

  std::span<const std::byte> bytes() const override { return {block_.bytes.get(), size_}; }
  std::byte* data() { return block_.bytes.get(); }
  std::size_t capacity() const { return block_.capacity; }
  const std::shared_ptr<FramePool::State>& pool() const { return pool_; }
  void resize(std::size_t bytes);  // at most capacity

 private:
  const std::shared_ptr<FramePool::State> pool_;
  Block block_;
  std::size_t size_ = 0;
};

}  // namespace tg::schema

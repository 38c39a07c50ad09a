#include "schema/frame/frame_buffer.h"

#include <bit>
#include <new>

#include "kernels/base/check.h"

namespace tg::schema {
namespace {

constexpr std::size_t kBlockAlignment = 64;  // a cache line
constexpr std::size_t kSizeClasses = std::bit_width(kMaxChunkPayloadBytes / FramePool::State::kSmallest);
constexpr std::size_t class_bytes(std::size_t size_class) {
  return (FramePool::State::kSmallest << size_class) + kFrameOverheadBytes;
}
static_assert(class_bytes(kSizeClasses - 1) == kMaxFrameBytes);
static_assert(class_bytes(0) % kBlockAlignment == 0);

std::size_t size_class_of(std::size_t bytes) {
  std::size_t size_class = 0;
  while (class_bytes(size_class) < bytes) ++size_class;
  return size_class;
}

}  // namespace

Block FramePool::State::acquire(std::size_t bytes) {
  TG_CHECK(bytes <= kMaxFrameBytes, bytes);
  const std::size_t size_class = size_class_of(bytes);
  const std::size_t capacity = class_bytes(size_class);
  {
    const std::lock_guard lock(mutex);
    used_bytes += capacity;
    if (!idle[size_class].empty()) {
      Block block = std::move(idle[size_class].back());
      idle[size_class].pop_back();
      idle_bytes -= capacity;
      return block;
    }
  }
  Block block{decltype(Block::bytes)(static_cast<std::byte*>(std::aligned_alloc(kBlockAlignment, capacity))), capacity};
  if (!block.bytes) throw std::bad_alloc();
  return block;
}

void FramePool::State::release(Block block) {
  const std::lock_guard lock(mutex);
  used_bytes -= block.capacity;
  if (idle_bytes + block.capacity > kMaxIdlePoolBytes) return;
  idle_bytes += block.capacity;
  idle[size_class_of(block.capacity)].push_back(std::move(block));
}

FramePool::FramePool() : state_(std::make_shared<State>()) { state_->idle.resize(kSizeClasses); }

FramePool::~FramePool() = default;

std::size_t FramePool::allocated_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle_bytes + state_->used_bytes;
}

PooledBytes::PooledBytes(std::shared_ptr<FramePool::State> pool, std::size_t capacity)
    : pool_(std::move(pool)), block_(pool_->acquire(capacity)) {}

PooledBytes::~PooledBytes() { pool_->release(std::move(block_)); }

void PooledBytes::resize(std::size_t bytes) {
  TG_CHECK(bytes <= block_.capacity, bytes, block_.capacity);
  size_ = bytes;
}

}  // namespace tg::schema

#include "engine/cpu/arena.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

Placement place(std::span<const BufferNeed> needs) {
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needs[a].bytes > needs[b].bytes; });
  Placement placement{std::vector<std::size_t>(needs.size(), 0), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t one : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!needs[other].lifetime.overlaps(needs[one].lifetime)) continue;
      if (placement.offsets[other] >= offset + whole_lines(needs[one].bytes)) break;  // fits before it
      offset = std::max(offset, placement.offsets[other] + whole_lines(needs[other].bytes));
    }
    placement.offsets[one] = offset;
    placement.bytes = std::max(placement.bytes, offset + whole_lines(needs[one].bytes));
    const auto behind = std::upper_bound(placed.begin(), placed.end(), offset, [&](std::size_t at, std::size_t other) {
      return at < placement.offsets[other];
    });
    placed.insert(behind, one);
  }
  return placement;
}

Placement place_apart(std::span<const BufferNeed> needs) {
  Placement placement;
  for (const BufferNeed& need : needs) {
    placement.offsets.push_back(placement.bytes);
    placement.bytes += whole_lines(need.bytes);
  }
  return placement;
}

std::size_t most_bytes_at_once(std::span<const BufferNeed> needs) {
  std::size_t most = 0;
  for (const BufferNeed& at : needs) {  // some buffer begins in the fullest slot
    std::size_t bytes = 0;
    for (const BufferNeed& need : needs)
      if (need.lifetime.first <= at.lifetime.first && at.lifetime.first <= need.lifetime.last) bytes += need.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

std::size_t Arena::add(const Lifetime& lifetime) {
  needs_.push_back({lifetime, 0});
  return needs_.size() - 1;
}

dnnl::memory Arena::view(std::size_t buffer, const dnnl::memory::desc& desc) {
  needs_[buffer].bytes = std::max(needs_[buffer].bytes, desc.get_size());
  views_.push_back({device_.view(desc), buffer});
  return views_.back().memory;
}

dnnl::memory Arena::view(const dnnl::memory& of, const dnnl::memory::desc& desc) {
  const auto found =
      std::find_if(views_.begin(), views_.end(), [&](const View& each) { return each.memory.get() == of.get(); });
  TG_CHECK(found != views_.end());
  return view(found->buffer, desc);
}

void Arena::bind(const Placement& placement, std::byte* memory) {
  TG_CHECK(placement.offsets.size() == needs_.size(), placement.offsets.size(), needs_.size());
  for (View& each : views_) point(each.memory, memory + placement.offsets[each.buffer]);
}

}  // namespace tg::engine::cpu

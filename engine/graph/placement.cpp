#include "engine/graph/placement.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/aligned_array.h"

namespace tg::engine {
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

}  // namespace tg::engine

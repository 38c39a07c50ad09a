// Places the buffers of a plan (plan.h) in one block of memory: buffers that never live at the same time may share a
// place. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/graph/plan.h"

namespace tg::engine {

struct BufferNeed {
  Lifetime lifetime;
  std::size_t bytes = 0;
};
struct Placement {
  std::vector<std::size_t> offsets;  // by buffer, bytes; multiples of a cache line
  std::size_t bytes = 0;             // size of the block
};
// Places the largest first, each at the lowest offset where it overlaps no buffer that lives at the same time.
Placement place(std::span<const BufferNeed> needs);
// Gives each a place of its own.
Placement place_apart(std::span<const BufferNeed> needs);
// Bytes of all buffers that live in the fullest slot: no placement needs less.
std::size_t most_bytes_at_once(std::span<const BufferNeed> needs);

}  // namespace tg::engine

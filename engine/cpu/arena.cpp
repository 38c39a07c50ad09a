#include "engine/cpu/arena.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace tg::engine::cpu {
std::size_t Arena::add(const Lifetime& lifetime) {
  needs_.push_back({lifetime, 0});
  return needs_.size() - 1;
}

dnnl::memory Arena::view(std::size_t buffer, const dnnl::memory::desc& desc) {
  needs_[buffer].bytes = std::max(needs_[buffer].bytes, desc.get_size());
  views_.push_back({library_.view(desc), buffer});
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

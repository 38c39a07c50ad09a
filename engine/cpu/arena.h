// One block of memory for all buffers of a network. A buffer is as large as its largest view and lives for some slots
// (plan.h); buffers that never live at the same time may share memory. The places are chosen once, when all buffers
// are known; only then do views point anywhere. Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "engine/cpu/onednn.h"
#include "engine/graph/placement.h"

namespace tg::engine::cpu {

class Arena {
 public:
  explicit Arena(const Library& library) : library_(library) {}

  std::size_t add(const Lifetime& lifetime);  // returns the buffer's number
  dnnl::memory view(std::size_t buffer, const dnnl::memory::desc& desc);
  // Another view of the buffer that `of` views.
  dnnl::memory view(const dnnl::memory& of, const dnnl::memory::desc& desc);

  const std::vector<BufferNeed>& needs() const { return needs_; }
  // placement: made from needs(). memory: placement.bytes bytes, which must outlive the views.
  void bind(const Placement& placement, std::byte* memory);

 private:
  struct View {
    dnnl::memory memory;
    std::size_t buffer;
  };
  const Library& library_;
  std::vector<BufferNeed> needs_;
  std::vector<View> views_;
};

}  // namespace tg::engine::cpu

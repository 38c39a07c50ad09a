#include "kernels/scratch.h"

#include "kernels/base/aligned_array.h"

namespace tg::kernels {

std::span<std::byte> thread_scratch(std::size_t bytes) {
  thread_local AlignedArray<std::byte> memory;
  if (memory.size() < bytes) memory = AlignedArray<std::byte>(bytes);
  return memory.span().first(bytes);
}

}  // namespace tg::kernels

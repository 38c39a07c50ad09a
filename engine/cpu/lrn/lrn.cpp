#include "engine/cpu/lrn/lrn.h"

#include "engine/cpu/lrn/block.h"

namespace tg::engine::cpu::lrn {
namespace {

// Each variant's object may use exactly the features checked here; engine/CMakeLists.txt has the flags.
std::vector<const Kernels*> probe() {
  std::vector<const Kernels*> variants;
#ifdef TGD_LRN_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2 && __builtin_cpu_supports("avx512f")) variants.push_back(&kAvx512);
  if (avx2) variants.push_back(&kAvx2);
#endif
  variants.push_back(&kScalar);
  return variants;
}

}  // namespace

std::size_t scratch_floats(const Window& window) { return Block::kArrays * Block(window).array; }

const std::vector<const Kernels*>& available() {
  static const std::vector<const Kernels*> variants = probe();
  return variants;
}

}  // namespace tg::engine::cpu::lrn

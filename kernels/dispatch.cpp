#include <string>

#include "kernels/kernels.h"
#include "kernels/scalar/functions.h"
#ifdef TGD_KERNELS_X86
#include <cpuid.h>

#include "kernels/x86/functions.h"
#endif

namespace tg::kernels {
namespace {

#ifdef TGD_KERNELS_X86
// Not every compiler's __builtin_cpu_supports knows "f16c".
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

Kernels joined(Kernels table, const EntropyCoder& coder) {
  table.encode_codes_rans = coder.encode_codes;
  table.decode_codes_rans = coder.decode_codes;
  table.encode_sums_rans = coder.encode_sums;
  table.decode_sums_rans = coder.decode_sums;
  return table;
}

const Kernels& avx2_table() {
  static const Kernels table = joined(avx2::kTable, avx2::kEntropyCoder);
  return table;
}

// The first processors with AVX-512 cannot move single bytes by a mask (VBMI2): they use AVX2's entropy coder.
const Kernels& avx512_table() {
  static const Kernels table =
      joined(avx512::kTable, __builtin_cpu_supports("avx512vbmi2") ? avx512::kEntropyCoder : avx2::kEntropyCoder);
  return table;
}
#endif

// Each variant's object may use exactly the features checked here; kernels/CMakeLists.txt has the flags.
std::vector<const Kernels*> probe() {
  std::vector<const Kernels*> variants;
#ifdef TGD_KERNELS_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) variants.push_back(&avx512_table());
  if (avx2) variants.push_back(&avx2_table());
#endif
  variants.push_back(&scalar::kTable);
  return variants;
}

}  // namespace

const std::vector<const Kernels*>& available() {
  static const std::vector<const Kernels*> variants = probe();
  return variants;
}

Result<const Kernels*> select(std::string_view name) {
  std::string names = "auto";
  for (const Kernels* const variant : available()) {
    names += ", " + std::string(variant->name);
    if (name != "auto" && name != variant->name) continue;
    if (self_test(*variant)) return variant;
    if (name == "auto") continue;
    return Error{ErrorKind::kFailed, "kernels '" + std::string(name) +
                                         "' compute wrong results on this processor; use " +
                                         "'auto', which falls back to the best variant that is correct"};
  }
  return Error{ErrorKind::kUsage,
               "kernels '" + std::string(name) + "' are not available on this processor; choose one of " + names};
}

}  // namespace tg::kernels

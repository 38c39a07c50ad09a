#include "tests/bench/reading.h"

#include <cstddef>
#include <cstdint>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::kernels {
namespace {

enum class Ahead { kNothing, kPage, kPagesInTurns };

template <class Lanes, Ahead kAhead>
[[gnu::always_inline]] inline float read_and_sum(const float* values, std::size_t elements) {
  constexpr std::size_t kStep = 8, kPage = 4096, kPages = 8;
  Lanes sums[kStep] = {};
  const auto* const lanes = reinterpret_cast<const Lanes*>(values);
  for (std::size_t i = 0; i < elements * sizeof(float) / sizeof(Lanes); i += kStep) {
    const std::uintptr_t bytes = reinterpret_cast<std::uintptr_t>(lanes + i);
    if constexpr (kAhead == Ahead::kPage) {
      for (std::size_t line = 0; line < kStep * sizeof(Lanes); line += kCacheLine)
        __builtin_prefetch(reinterpret_cast<const void*>(bytes + kPage + line));  // NOLINT(performance-no-int-to-ptr)
    } else if constexpr (kAhead == Ahead::kPagesInTurns) {
      for (std::size_t byte = 0; byte < kStep * sizeof(Lanes); byte += kCacheLine) {
        const std::size_t line = (i * sizeof(Lanes) + byte) / kCacheLine % (kPages * kPage / kCacheLine);
        const std::uintptr_t span = bytes + byte - line * kCacheLine + kPages * kPage;  // the next one
        const std::uintptr_t at = span + line % kPages * kPage + line / kPages * kCacheLine;
        __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 2);  // NOLINT(performance-no-int-to-ptr)
      }
    }
    for (std::size_t l = 0; l < kStep; ++l) sums[l] += lanes[i + l];
  }
  for (std::size_t l = 1; l < kStep; ++l) sums[0] += sums[l];
  float sum = 0;
  for (std::size_t l = 0; l < sizeof(Lanes) / sizeof(float); ++l) sum += sums[0][l];
  return sum;
}

using Lanes4 = float __attribute__((vector_size(16)));

float read_plain(const float* values, std::size_t elements) {
  return read_and_sum<Lanes4, Ahead::kNothing>(values, elements);
}
float read_plain_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes4, Ahead::kPage>(values, elements);
}

#if defined(__x86_64__)
using Lanes8 = float __attribute__((vector_size(32)));
using Lanes16 = float __attribute__((vector_size(64)));

[[gnu::target("avx2")]] float read_avx2(const float* values, std::size_t elements) {
  return read_and_sum<Lanes8, Ahead::kNothing>(values, elements);
}
[[gnu::target("avx2")]] float read_avx2_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes8, Ahead::kPage>(values, elements);
}
[[gnu::target("avx512f")]] float read_avx512(const float* values, std::size_t elements) {
  return read_and_sum<Lanes16, Ahead::kNothing>(values, elements);
}
[[gnu::target("avx512f")]] float read_avx512_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes16, Ahead::kPage>(values, elements);
}
[[gnu::target("avx512f")]] float read_avx512_in_turns(const float* values, std::size_t elements) {
  return read_and_sum<Lanes16, Ahead::kPagesInTurns>(values, elements);
}
#endif

}  // namespace

std::vector<std::pair<const char*, ReadAndSum>> readers() {
  std::vector<std::pair<const char*, ReadAndSum>> list = {{"read and sum", read_plain},
                                                          {"read and sum, prefetch", read_plain_ahead}};
#if defined(__x86_64__)
  for (const Kernels* const kernels : available()) {
    if (kernels->name == "avx2") {
      list.emplace_back("read and sum, avx2", read_avx2);
      list.emplace_back("read and sum, avx2, prefetch", read_avx2_ahead);
    } else if (kernels->name == "avx512") {
      list.emplace_back("read and sum, avx512", read_avx512);
      list.emplace_back("read and sum, avx512, prefetch", read_avx512_ahead);
    }
  }
#endif
  return list;
}

std::vector<std::pair<const char*, ReadAndSum>> readers_in_turns() {
#if defined(__x86_64__)
  for (const Kernels* const kernels : available())
    if (kernels->name == "avx512") return {{"read and sum, avx512, in turns", read_avx512_in_turns}};
#endif
  return {};
}

}  // namespace tg::kernels

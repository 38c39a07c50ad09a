#include "daemon/forecast/bench/roofs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 10;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Independent chains, so that no adder waits for the one before.
constexpr std::size_t kChains = 8;

template <class Lanes>
[[gnu::always_inline]] inline float sum_in(const float* values, std::size_t count) {
  Lanes sums[kChains] = {};
  const auto* const lanes = reinterpret_cast<const Lanes*>(values);
  for (std::size_t i = 0; i < count * sizeof(float) / sizeof(Lanes); i += kChains)
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kChains; ++c) sums[c] += lanes[i + c];
  float sum = 0;
  for (const Lanes& one : sums)
    for (std::size_t l = 0; l < sizeof(Lanes) / sizeof(float); ++l) sum += one[l];
  return sum;
}

using Narrow = float __attribute__((vector_size(16)));
using Middle = float __attribute__((vector_size(32)));
using Wide = float __attribute__((vector_size(64)));

#if defined(__x86_64__) && !defined(__clang_analyzer__)  // clang-tidy cannot read the assembler below

// Eight chains keep two units of four cycles' latency busy; four more are a reserve.
constexpr int kMultiplyChains = 12;
constexpr std::size_t kIterations = 500'000;  // 2 ms at 3 GHz

template <class Vector>
[[gnu::always_inline]] inline double multiply_add(std::size_t iterations) {
  Vector sums[kMultiplyChains] = {};
  Vector factor = {};
  for (std::size_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (Vector& sum : sums) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(factor));
  }
  return 2.0 * kMultiplyChains * sizeof(Vector) / sizeof(float) * static_cast<double>(iterations);
}

[[gnu::target("avx512f")]] double operations_avx512() { return multiply_add<Wide>(kIterations); }
[[gnu::target("avx2,fma")]] double operations_avx2() { return multiply_add<Middle>(kIterations); }

[[gnu::target("avx512f")]] float sum_avx512(const float* values, std::size_t count) {
  return sum_in<Wide>(values, count);
}
[[gnu::target("avx2")]] float sum_avx2(const float* values, std::size_t count) { return sum_in<Middle>(values, count); }

float sum_all(const float* values, std::size_t count) {
  if (__builtin_cpu_supports("avx512f")) return sum_avx512(values, count);
  if (__builtin_cpu_supports("avx2")) return sum_avx2(values, count);
  return sum_in<Narrow>(values, count);
}

double operations() {
  if (__builtin_cpu_supports("avx512f")) return operations_avx512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return operations_avx2();
  return 0;
}

#else

float sum_all(const float* values, std::size_t count) { return sum_in<Narrow>(values, count); }
double operations() { return 0; }

#endif

}  // namespace

double read_rate(std::span<const float> values) {
  TG_CHECK(values.size() % (kChains * sizeof(Wide) / sizeof(float)) == 0, values.size());
  const Clock::time_point start = Clock::now();
  [[maybe_unused]] const volatile float kept = sum_all(values.data(), values.size());
  return static_cast<double>(values.size()) / seconds_since(start) * 1e-9;
}

double copy_rate(std::span<const float> from, std::span<float> to) {
  TG_CHECK(from.size() == to.size(), from.size(), to.size());
  const Clock::time_point start = Clock::now();
  std::memcpy(to.data(), from.data(), from.size_bytes());
  return static_cast<double>(from.size()) / seconds_since(start) * 1e-9;
}

double peak_gflops(int threads) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    std::latch begin(threads + 1);
    {
      std::vector<std::jthread> workers;  // joined at the end of the block, or by an exception
      try {
        for (double& mine : rates) {
          workers.emplace_back([&begin, &mine] {
            begin.arrive_and_wait();
            const Clock::time_point start = Clock::now();
            const double done = operations();
            mine = done / seconds_since(start);
          });
        }
      } catch (...) {
        begin.count_down(threads + 1 - static_cast<std::ptrdiff_t>(workers.size()));  // those who wait go on
        throw;
      }
      begin.arrive_and_wait();
    }
    double all = 0;
    for (const double mine : rates) all += mine;
    best = std::max(best, all * 1e-9);
  }
  return best;
}

}  // namespace tg::daemon

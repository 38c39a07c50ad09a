// How fast each kernel of each variant is, on one core, against a plain read-and-sum pass measured in the same run.
// Verifies first: a variant that fails its self-test is not timed. Two sizes: 64 Ki elements, which stay in the second
// level cache, and 61 Mi floats (256 MB), AlexNet's size, which do not. All kernels take their turn in every round, so
// a neighbour's load falls on all of them; medians over the rounds. Units: 10^9 elements per second of processor time.
//
// Usage: tgd_bench_kernels [ROUNDS]       (default 7)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"

namespace tg::kernels {
namespace {

constexpr std::size_t kInCache = 64 * 1024;
constexpr std::size_t kInMemory = 61 * 1024 * 1024;
constexpr int kPeers = 7;

// Eight independent chains of eight floats: no adder waits, and the compiler vectorises it for any instruction set.
using Lanes = float __attribute__((vector_size(32)));

[[gnu::target("avx2")]] float read_and_sum_avx2(const float* values, std::size_t elements) {
  Lanes sums[8] = {};
  const auto* const lanes = reinterpret_cast<const Lanes*>(values);
  for (std::size_t i = 0; i < elements / 8; i += 8) {
    __builtin_prefetch(lanes + i + 128);
    __builtin_prefetch(lanes + i + 130);
    __builtin_prefetch(lanes + i + 132);
    __builtin_prefetch(lanes + i + 134);
    for (std::size_t l = 0; l < 8; ++l) sums[l] += lanes[i + l];
  }
  Lanes total = {};
  for (const Lanes& lane : sums) total += lane;
  float sum = 0;
  for (int l = 0; l < 8; ++l) sum += total[l];
  return sum;
}

float read_and_sum_plain(const float* values, std::size_t elements) {
  float sums[8] = {};
  for (std::size_t i = 0; i < elements; i += 8) {
    for (std::size_t l = 0; l < 8; ++l) sums[l] += values[i + l];
  }
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return sum;
}

volatile float float_sink;
volatile std::uint64_t word_sink;

// The arrays of one size, filled as a gradient clipped at 2.5 sigma would fill them (68 % zeros).
struct Arrays {
  explicit Arrays(std::size_t count)
      : elements(count),
        gradient(count),
        nonzero(count / kWordBits),
        negative(count / kWordBits),
        codes(codes_bound(count)),
        sums(count),
        sums_payload(sums_bound(count, kPeers + 1)),
        parameters(count),
        slot(count),
        parameters_to(count),
        slot_to(count) {
    for (std::size_t i = 0; i < count; i += 4) {
      const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i), 1, 2, 3};
      std::uint32_t words[4];
      philox4x32(counter, 1, words);
      // The sum of four uniform bytes is near enough to a Gaussian; sigma is 148.
      for (std::size_t e = 0; e < 4; ++e) {
        int total = -510;
        for (int shift = 0; shift < 32; shift += 8) total += static_cast<int>(words[e] >> shift & 0xFF);
        gradient[i + e] = static_cast<float>(total) / 148;
        parameters[i + e] = gradient[i + e] * 0.01F;
      }
    }
  }
  Planes planes() { return {nonzero.span(), negative.span()}; }
  ConstPlanes view() const { return {nonzero.span(), negative.span()}; }

  std::size_t elements;
  AlignedArray<float> gradient;
  AlignedArray<std::uint64_t> nonzero, negative;
  AlignedArray<std::byte> codes;
  AlignedArray<std::int8_t> sums;
  AlignedArray<std::byte> sums_payload;
  AlignedArray<float> parameters, slot, parameters_to, slot_to;
  std::size_t codes_bytes = 0, sums_bytes = 0;
};

constexpr Scale kScale{2.5F, 2.5F};
constexpr Update kMomentum{.kind = OptimizerKind::kMomentum, .rate = 0.01F, .scale = 0.001F, .momentum = 0.9F};

// Codes, sums and their payloads, so that every timed kernel has its input.
void prepare(Arrays& a, const Kernels& k) {
  std::ranges::fill(a.sums, 0);
  for (std::uint32_t member = 0; member <= kPeers; ++member) {
    k.ternarize(a.gradient.span(), 0, {.seed = 1, .rank = member}, kScale, a.planes());
    k.accumulate_planes(a.view(), a.sums.span());
  }
  a.codes_bytes = k.encode_codes(a.view(), a.codes.span());
  a.sums_bytes = k.encode_sums(a.sums.span(), kPeers + 1, a.sums_payload.span());
}

struct Timed {
  std::string name;
  std::function<void()> run;
  std::vector<double> rates;  // G elements per second, one per round

  double median() {
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
  }
};

void add_variant(std::vector<Timed>& list, Arrays& a, const Kernels& k) {
  const std::string prefix = std::string(k.name) + " ";
  const auto add = [&](const char* name, std::function<void()> run) {
    list.push_back({prefix + name, std::move(run), {}});
  };
  const auto sums_payload = [&a] { return a.sums_payload.span().first(a.sums_bytes); };
  const auto codes = [&a] { return a.codes.span().first(a.codes_bytes); };
  add("statistics", [&] { float_sink = k.statistics(a.gradient.span()).max_abs; });
  add("ternarize", [&] { k.ternarize(a.gradient.span(), 0, {.seed = 1, .rank = kPeers}, kScale, a.planes()); });
  add("encode_codes", [&] { word_sink = k.encode_codes(a.view(), a.codes.span()); });
  add("decode_codes", [&, codes] { word_sink = k.decode_codes(codes(), a.planes()); });
  add("accumulate_planes +-", [&] {
    // Added, then taken away with the signs turned, so that the sums stay what they are.
    k.accumulate_planes(a.view(), a.sums.span());
    for (std::size_t w = 0; w < a.negative.size(); ++w) a.negative[w] ^= a.nonzero[w];
    k.accumulate_planes(a.view(), a.sums.span());
    for (std::size_t w = 0; w < a.negative.size(); ++w) a.negative[w] ^= a.nonzero[w];
  });
  add("encode_sums, 8 members", [&] { word_sink = k.encode_sums(a.sums.span(), kPeers + 1, a.sums_payload.span()); });
  add("decode_sums, 8 members",
      [&, sums_payload] { word_sink = k.decode_sums(sums_payload(), kPeers + 1, a.sums.span()); });
  add("apply_floats, momentum", [&] {
    k.apply_floats(kMomentum, a.gradient.span(), {a.parameters.span(), a.slot.span(), {}},
                   {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add("apply_sums, momentum", [&] {
    k.apply_sums(kMomentum, a.sums.span(), {a.parameters.span(), a.slot.span(), {}},
                 {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add("accumulate_floats", [&] { k.accumulate_floats(std::as_bytes(a.gradient.span()), a.parameters_to.span()); });
  add("add_scaled", [&] { k.add_scaled(a.gradient.span(), 1e-9F, a.parameters_to.span()); });
  add("average", [&] { k.average(a.gradient.span(), 0.5F, a.parameters_to.span()); });
  add("digest", [&] { word_sink = k.digest(a.parameters.span(), 0, 1); });
}

// This thread's processor time: what other processes take of the core does not count, and the work here never waits.
double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double rate_of(const std::function<void()>& run, std::size_t elements) {
  constexpr double kLeast = 2e6;  // ns; repeats short runs until the clock is fine enough
  std::size_t repeats = 0;
  const double start = processor_ns();
  double spent = 0;
  do {
    run();
    ++repeats;
    spent = processor_ns() - start;
  } while (spent < kLeast);
  return static_cast<double>(elements) * static_cast<double>(repeats) / spent;
}

void bench(std::size_t elements, int rounds, const char* where) {
  Arrays arrays(elements);
  prepare(arrays, *available().front());
  std::vector<Timed> list;
  const bool avx2 = available().size() > 1;
  list.push_back({"read and sum",
                  [&] {
                    const float* const at = arrays.gradient.data();
                    float_sink = avx2 ? read_and_sum_avx2(at, elements) : read_and_sum_plain(at, elements);
                  },
                  {}});
  for (const Kernels* const kernels : available()) {
    if (kernels->name == "scalar" && elements > kInCache) continue;  // bound by its arithmetic, the same as in cache
    add_variant(list, arrays, *kernels);
  }
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up
    for (Timed& timed : list) {
      const double rate = rate_of(timed.run, elements);
      if (round >= 0) timed.rates.push_back(rate);
    }
  }
  const double roof = list.front().median();
  std::printf("\n%zu elements, %s; medians of %d rounds\n%-34s %8s %8s\n", elements, where, rounds, "", "G/s",
              "of read");
  for (Timed& timed : list)
    std::printf("%-34s %8.2f %8.3f\n", timed.name.c_str(), timed.median(), timed.median() / roof);
}

int run(int rounds) {
  for (const Kernels* const kernels : available()) {
    if (!self_test(*kernels)) {
      std::fprintf(stderr, "%s computes wrong results on this processor: nothing is timed\n", kernels->name.data());
      return 1;
    }
    std::printf("%s: right\n", kernels->name.data());
  }
  bench(kInCache, rounds, "in cache");
  bench(kInMemory, rounds, "in memory");
  return 0;
}

}  // namespace
}  // namespace tg::kernels

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
    return 2;
  }
  return tg::kernels::run(rounds);
}

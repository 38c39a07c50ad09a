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

// The roof: what reading costs. Eight independent chains, so that no adder waits; with and without a prefetch 4 KiB
// ahead, in the widest registers there are. The fastest of them counts.
template <class Lanes, bool kAhead>
[[gnu::always_inline]] inline float read_and_sum(const float* values, std::size_t elements) {
  constexpr std::size_t kStep = 8;
  Lanes sums[kStep] = {};
  const auto* const lanes = reinterpret_cast<const Lanes*>(values);
  for (std::size_t i = 0; i < elements * sizeof(float) / sizeof(Lanes); i += kStep) {
    if constexpr (kAhead) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(lanes + i) + 4096;
      for (std::size_t line = 0; line < kStep * sizeof(Lanes); line += kCacheLine) __builtin_prefetch(bytes + line);
    }
    for (std::size_t l = 0; l < kStep; ++l) sums[l] += lanes[i + l];
  }
  for (std::size_t l = 1; l < kStep; ++l) sums[0] += sums[l];
  float sum = 0;
  for (std::size_t l = 0; l < sizeof(Lanes) / sizeof(float); ++l) sum += sums[0][l];
  return sum;
}

using Lanes4 = float __attribute__((vector_size(16)));
using ReadAndSum = float (*)(const float*, std::size_t);

float read_plain(const float* values, std::size_t elements) { return read_and_sum<Lanes4, false>(values, elements); }
float read_plain_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes4, true>(values, elements);
}

#if defined(__x86_64__)
using Lanes8 = float __attribute__((vector_size(32)));
using Lanes16 = float __attribute__((vector_size(64)));

[[gnu::target("avx2")]] float read_avx2(const float* values, std::size_t elements) {
  return read_and_sum<Lanes8, false>(values, elements);
}
[[gnu::target("avx2")]] float read_avx2_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes8, true>(values, elements);
}
[[gnu::target("avx512f")]] float read_avx512(const float* values, std::size_t elements) {
  return read_and_sum<Lanes16, false>(values, elements);
}
[[gnu::target("avx512f")]] float read_avx512_ahead(const float* values, std::size_t elements) {
  return read_and_sum<Lanes16, true>(values, elements);
}
#endif

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
        chunk_sums(kInCache),
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
  AlignedArray<std::int8_t> sums, chunk_sums;
  AlignedArray<std::byte> sums_payload;
  AlignedArray<float> parameters, slot, parameters_to, slot_to;
  std::size_t codes_bytes = 0, sums_bytes = 0;
  std::vector<AlignedArray<std::byte>> peers;  // kPeers payloads of each chunk of kInCache elements, peer by peer
};

constexpr Scale kScale{2.5F, 2.5F};

// As the daemon would update a model of so many elements.
Update momentum_of(const Arrays& a) {
  return {.kind = OptimizerKind::kMomentum,
          .rate = 0.01F,
          .scale = 0.001F,
          .momentum = 0.9F,
          .past_caches = a.elements >= kPastCaches};
}

// Codes, sums and their payloads, so that every timed kernel has its input.
static_assert(kInMemory % kInCache == 0);

void prepare(Arrays& a, const Kernels& k) {
  std::ranges::fill(a.sums, 0);
  for (std::uint32_t member = 0; member <= kPeers; ++member) {
    k.ternarize(a.gradient.span(), 0, {.seed = 1, .rank = member}, kScale, a.planes());
    k.accumulate_planes(a.view(), a.sums.span());
    for (std::size_t first = 0; member > 0 && first < a.elements; first += kInCache) {
      const std::size_t words = kInCache / kWordBits, at = first / kWordBits;
      const std::size_t bytes =
          k.encode_codes({a.nonzero.span().subspan(at, words), a.negative.span().subspan(at, words)}, a.codes.span());
      std::ranges::copy(a.codes.span().first(bytes), a.peers.emplace_back(bytes).begin());
    }
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
    k.apply_floats(momentum_of(a), a.gradient.span(), {a.parameters.span(), a.slot.span(), {}},
                   {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add("apply_sums, momentum", [&] {
    k.apply_sums(momentum_of(a), a.sums.span(), {a.parameters.span(), a.slot.span(), {}},
                 {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add("7 peers' codes, then momentum", [&] {
    const std::size_t chunks = a.elements / kInCache;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t first = chunk * kInCache;
      const auto part = [&](AlignedArray<float>& array) { return array.span().subspan(first, kInCache); };
      std::ranges::fill(a.chunk_sums, 0);
      for (std::size_t peer = 0; peer < kPeers; ++peer) {
        word_sink = k.accumulate_codes(a.peers[peer * chunks + chunk].span(), a.chunk_sums.span());
      }
      k.apply_sums(momentum_of(a), a.chunk_sums.span(), {part(a.parameters), part(a.slot), {}},
                   {part(a.parameters_to), part(a.slot_to), {}});
    }
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
  for (const auto& [name, read] : readers()) {
    list.push_back({name, [&arrays, read = read] { float_sink = read(arrays.gradient.data(), arrays.elements); }, {}});
  }
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
  double roof = 0;
  for (std::size_t i = 0; i < readers().size(); ++i) roof = std::max(roof, list[i].median());
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

// How fast each kernel of each variant is, on one core, against a plain read-and-sum pass measured in the same run.
// Verifies first: a variant that fails its self-test is not timed. Two sizes: 64 Ki elements, which stay in the second
// level cache, and 61 Mi floats (256 MB), AlexNet's size, which do not. All kernels take their turn in every round, so
// a neighbour's load falls on all of them; medians over the rounds. Units: 10^9 elements per second of processor time.
//
// Then the budgets of the codec (codec.h): sizes, speeds and the fused update against their targets.
//
// Usage: tgd_bench_kernels [--rounds N] [--gradients FILE] [--only kernels|codec]
//   N         rounds, of which the median counts (default 7)
//   FILE      a recorded gradient, raw little-endian float32 without a header: one segment, coded besides the made ones
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/bench/codec.h"
#include "tests/bench/reading.h"
#include "tests/bench/timing.h"

namespace tg::kernels {
namespace {

constexpr std::size_t kInCache = 64 * 1024;
constexpr std::size_t kInMemory = 61 * 1024 * 1024;
constexpr int kPeers = 7;

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
        halves(count * 2),
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
  AlignedArray<std::byte> sums_payload, halves;
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
  add("7 peers' codes and momentum", [&] {
    const std::size_t chunks = a.elements / kInCache;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t first = chunk * kInCache;
      const auto part = [&](AlignedArray<float>& array) { return array.span().subspan(first, kInCache); };
      std::array<std::span<const std::byte>, kPeers> payloads;
      for (std::size_t peer = 0; peer < kPeers; ++peer) payloads[peer] = a.peers[peer * chunks + chunk].span();
      word_sink = k.apply_codes(momentum_of(a), {payloads, {}}, {part(a.parameters), part(a.slot), {}},
                                {part(a.parameters_to), part(a.slot_to), {}});
    }
  });
  add("accumulate_scaled", [&] { k.accumulate_scaled(a.view(), 1e-9F, a.parameters_to.span()); });
  add("encode_halves", [&] { k.encode_halves(a.gradient.span(), a.halves.span()); });
  add("decode_halves", [&] { k.decode_halves(a.halves.span(), a.parameters_to.span()); });
  add("accumulate_halves", [&] { k.accumulate_halves(a.halves.span(), a.parameters_to.span()); });
  add("accumulate_floats", [&] { k.accumulate_floats(std::as_bytes(a.gradient.span()), a.parameters_to.span()); });
  add("add_scaled", [&] { k.add_scaled(a.gradient.span(), 1e-9F, a.parameters_to.span()); });
  add("average", [&] { k.average(a.gradient.span(), 0.5F, a.parameters_to.span()); });
  add("digest", [&] { word_sink = k.digest(a.parameters.span(), 0, 1); });
}

void bench(std::size_t elements, int rounds, const char* where) {
  Arrays arrays(elements);
  prepare(arrays, *available().front());
  std::vector<Timed> list;
  const auto add_readers = [&](const auto& readers) {
    for (const auto& [name, read] : readers)
      list.push_back(
          {name, [&arrays, read = read] { float_sink = read(arrays.gradient.data(), arrays.elements); }, {}});
  };
  add_readers(readers());
  add_readers(readers_in_turns());
  for (const Kernels* const kernels : available()) {
    if (kernels->name == "scalar" && elements > kInCache) continue;  // bound by its arithmetic, the same as in cache
    add_variant(list, arrays, *kernels);
  }
  time_all(list, elements, rounds);
  double roof = 0;
  for (std::size_t i = 0; i < readers().size(); ++i) roof = std::max(roof, list[i].median());
  std::printf("\n%zu elements, %s; medians of %d rounds\n%-34s %8s %8s\n", elements, where, rounds, "", "G/s",
              "of read");
  for (Timed& timed : list)
    std::printf("%-34s %8.2f %8.3f\n", timed.name.c_str(), timed.median(), timed.median() / roof);
}

// False, with a word on stderr, if a variant computes wrong results.
bool all_right() {
  for (const Kernels* const kernels : available()) {
    if (!self_test(*kernels)) {
      std::fprintf(stderr, "%s computes wrong results on this processor: nothing is timed\n", kernels->name.data());
      return false;
    }
    std::printf("%s: right\n", kernels->name.data());
  }
  return true;
}

}  // namespace
}  // namespace tg::kernels

int main(int argc, char** argv) {
  using namespace tg::kernels;
  int rounds = 7;
  std::string only, gradients;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--rounds") rounds = std::atoi(value.c_str());
    if (word == "--gradients") gradients = value;
    if (word == "--only") only = value;
    const bool known = word == "--rounds" || word == "--gradients" || word == "--only";
    if (!known || value.empty() || rounds < 1 || !(only.empty() || only == "kernels" || only == "codec")) {
      std::fprintf(stderr, "usage: %s [--rounds N] [--gradients FILE] [--only kernels|codec]\n", argv[0]);
      return 2;
    }
    ++i;
  }
  if (!all_right()) return 1;
  if (only != "codec") {
    bench(kInCache, rounds, "in cache");
    bench(kInMemory, rounds, "in memory");
  }
  return only == "kernels" || bench_codec(kInMemory, rounds, gradients) ? 0 : 1;
}

// How fast each kernel of each variant is, on one core, against a plain read-and-sum pass measured in the same run.
// Verifies first: a variant that fails its self-test is not timed. Two sizes: 64 Ki elements, which stay in the second
// level cache, and 61 Mi floats (256 MB), AlexNet's size, which do not. All kernels take their turn in every round, so
// a neighbour's load falls on all of them; medians over the rounds. Units: 10^9 elements per second of processor time.
// What has a budget is timed at 68, 92 and 99 % zeros, from memory, and its target is printed.
//
// Then the budgets of the codec (codec/codec.h): sizes, speeds and the fused update against their targets.
//
// Usage: tgd_bench_kernels [--rounds N] [--gradients MODEL=FILE]... [--only kernels|codec|recorded]
//   N           rounds, of which the median counts (default 7)
//   MODEL=FILE  recorded gradients of that model (tgd_lab_record), coded besides the made ones, each segment by itself;
//               "{rank}" in FILE stands for 0 to 7, a file for each of the eight members. --only recorded: these alone
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/bench/codec/codec.h"
#include "tests/bench/made_gradient.h"
#include "tests/bench/reading.h"
#include "tests/bench/row.h"
#include "tests/bench/timing.h"

namespace tg::kernels {
namespace {

constexpr std::size_t kInCache = 64 * 1024;
constexpr std::size_t kInMemory = 61 * 1024 * 1024;
constexpr int kPeers = 7;

// The arrays of one size and sparseness.
struct Arrays {
  Arrays(std::size_t count, const Sparseness& sparseness)
      : elements(count),
        made(count, sparseness),
        gradient(made.values),
        scale(made.scale),
        nonzero(count / kWordBits),
        negative(count / kWordBits),
        codes(codes_bound(count)),
        sums(count),
        sums_payload(sums_bound(count, kPeers + 1)),
        float16(count * 2),
        parameters(count),
        slot(count),
        parameters_to(count),
        slot_to(count) {
    for (std::size_t i = 0; i < count; ++i) parameters[i] = gradient[i] * 0.01F;
  }
  Planes planes() { return {nonzero.span(), negative.span()}; }
  ConstPlanes view() const { return {nonzero.span(), negative.span()}; }

  std::size_t elements;
  MadeGradient made;
  const AlignedArray<float>& gradient;
  const Scale scale;
  AlignedArray<std::uint64_t> nonzero, negative;
  AlignedArray<std::byte> codes;
  AlignedArray<std::int8_t> sums;
  AlignedArray<std::byte> sums_payload, float16;
  AlignedArray<float> parameters, slot, parameters_to, slot_to;
  std::size_t codes_bytes = 0, sums_bytes = 0;
  std::vector<AlignedArray<std::byte>> peers;  // kPeers payloads of each chunk of kInCache elements, peer by peer
};

// Updates a model of so many elements as the daemon would.
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
    k.ternarize(a.gradient.span(), 0, {.seed = 1, .seat = member}, a.scale, a.planes());
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

constexpr const char* kStatistics = "statistics";
constexpr const char* kTernarize = "ternarize";
constexpr const char* kPlainUpdate = "apply_floats, momentum";
constexpr const char* kUpdate = "7 peers' codes and momentum";

// all: what has no budget, too.
void add_variant(std::vector<Timed>& list, Arrays& a, const Kernels& k, bool all) {
  const std::string prefix = std::string(k.name) + " ";
  const auto add = [&](const char* name, std::function<void()> run) {
    list.push_back({prefix + name, std::move(run), {}});
  };
  add(kStatistics, [&] { float_sink = k.statistics(a.gradient.span()).max_abs; });
  add(kTernarize, [&] { k.ternarize(a.gradient.span(), 0, {.seed = 1, .seat = kPeers}, a.scale, a.planes()); });
  add(kPlainUpdate, [&] {
    k.apply_floats(momentum_of(a), a.gradient.span(), {a.parameters.span(), a.slot.span(), {}},
                   {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add(kUpdate, [&] {
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
  if (!all) return;
  const auto sums_payload = [&a] { return a.sums_payload.span().first(a.sums_bytes); };
  const auto codes = [&a] { return a.codes.span().first(a.codes_bytes); };
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
  add("apply_sums, momentum", [&] {
    k.apply_sums(momentum_of(a), a.sums.span(), {a.parameters.span(), a.slot.span(), {}},
                 {a.parameters_to.span(), a.slot_to.span(), {}});
  });
  add("accumulate_scaled", [&] { k.accumulate_scaled(a.view(), 1e-9F, a.parameters_to.span()); });
  add("encode_float16", [&] { k.encode_float16(a.gradient.span(), a.float16.span()); });
  add("decode_float16", [&] { k.decode_float16(a.float16.span(), a.parameters_to.span()); });
  add("accumulate_float16", [&] { k.accumulate_float16(a.float16.span(), a.parameters_to.span()); });
  add("accumulate_floats", [&] { k.accumulate_floats(std::as_bytes(a.gradient.span()), a.parameters_to.span()); });
  add("add_scaled", [&] { k.add_scaled(a.gradient.span(), 1e-9F, a.parameters_to.span()); });
  add("average", [&] { k.average(a.gradient.span(), 0.5F, a.parameters_to.span()); });
  add("digest", [&] { word_sink = k.digest(a.parameters.span(), 0, 1); });
}

// Over the roof, of arrays in memory; 0: none.
double target_of(const std::string& name) {
  if (name.ends_with(kStatistics) && !name.starts_with("scalar")) return 0.95;
  if (name.ends_with(kTernarize)) return name.starts_with("avx512") ? 0.80 : name.starts_with("avx2") ? 0.40 : 0;
  return 0;
}

struct Setting {
  std::size_t elements;
  const char* where;
  Sparseness sparseness;
  bool all;  // kernels, or those that have a budget
};

void bench(const Setting& setting, int rounds) {
  const std::size_t elements = setting.elements;
  const bool in_memory = elements > kInCache;
  Arrays arrays(elements, setting.sparseness);
  prepare(arrays, *available().front());
  const double ones = static_cast<double>(available().front()->count(arrays.nonzero.span()));
  std::vector<Timed> list;
  const auto add_readers = [&](const auto& readers) {
    for (const auto& [name, read] : readers)
      list.push_back(
          {name, [&arrays, read = read] { float_sink = read(arrays.gradient.data(), arrays.elements); }, {}});
  };
  add_readers(readers());
  if (setting.all) add_readers(readers_in_turns());
  for (const Kernels* const kernels : available()) {
    if (kernels->name == "scalar" && in_memory) continue;  // bound by its arithmetic, the same as in cache
    add_variant(list, arrays, *kernels, setting.all);
  }
  time_all(list, elements, rounds);
  double roof = 0;
  for (std::size_t i = 0; i < readers().size(); ++i) roof = std::max(roof, list[i].median());
  std::printf("\n%zu elements, %s, %.1f %% zeros; medians of %d rounds\n%-44s %8s %-12s %7s\n", elements, setting.where,
              100 * (1 - ones / static_cast<double>(elements)), rounds, "", "", "", "of read");
  double plain = 0;  // the update of the same variant, before the other
  for (Timed& timed : list) {
    const double rate = timed.median();
    print({timed.name, rate, "G/s", rate / roof, in_memory ? target_of(timed.name) : 0});
    if (timed.name.ends_with(kPlainUpdate)) plain = rate;
    if (timed.name.ends_with(kUpdate) && in_memory)
      print({"... over " + std::string(kPlainUpdate), rate, "G/s", rate / plain, 1});
  }
}

// Returns false, with a message on stderr, if a variant computes wrong results.
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
  std::string only;
  std::vector<RecordedSubject> recorded;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    const std::size_t equals = value.find('=');
    bool good = !value.empty();
    if (word == "--rounds") {
      rounds = std::atoi(value.c_str());
      good = rounds >= 1;
    } else if (word == "--gradients") {
      const auto model = tg::from_word<tg::ModelKind>(value.substr(0, equals));
      good = model && equals != std::string::npos;
      if (good) {
        auto read = read_recorded_subject(*model, value.substr(equals + 1));
        if (!read) {
          std::fprintf(stderr, "%s\n", read.error().message.c_str());
          return 1;
        }
        recorded.push_back(std::move(read).value());
      }
    } else if (word == "--only") {
      only = value;
      good = only == "kernels" || only == "codec" || only == "recorded";
    } else {
      good = false;
    }
    if (!good) {
      std::fprintf(stderr, "usage: %s [--rounds N] [--gradients MODEL=FILE]... [--only kernels|codec|recorded]\n",
                   argv[0]);
      return 2;
    }
  }
  if (!all_right()) return 1;
  if (only.empty() || only == "kernels") {
    bench({kInCache, "in cache", kConcentrated[0], true}, rounds);
    for (const Sparseness& sparseness : kConcentrated)
      bench({kInMemory, "in memory", sparseness, &sparseness == kConcentrated.data()}, rounds);
  }
  if (only == "kernels") return 0;
  if (only != "recorded" && !bench_made(kInMemory, rounds)) return 1;
  return bench_recorded(recorded, kInMemory, rounds) ? 0 : 1;
}

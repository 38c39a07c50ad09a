#include "tests/bench/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "tests/bench/reading.h"
#include "tests/bench/timing.h"

namespace tg::kernels {
namespace {

constexpr std::size_t kChunk = 512 * 1024;  // elements
constexpr int kMembers = 8;

struct Row {
  std::string name;
  double value, ratio;
  const char* unit;
  double target;  // 0: none
  bool most;      // the target is an upper bound
};

void print(const Row& row) {
  std::printf("%-44s %8.2f %-12s %7.3f", row.name.c_str(), row.value, row.unit, row.ratio);
  if (row.target > 0) {
    const bool met = row.most ? row.ratio <= row.target : row.ratio >= row.target;
    std::printf("  %s %.2f  %s", row.most ? "<=" : ">=", row.target, met ? "met" : "NOT MET");
  }
  std::printf("\n");
}

double plogp(std::size_t count, std::size_t of) {  // bits that `count` of `of` equal symbols take at least
  return count == 0 ? 0 : -static_cast<double>(count) * std::log2(static_cast<double>(count) / static_cast<double>(of));
}

// One gradient, the members' draws of which are coded chunk by chunk.
struct Subject {
  std::string name;
  std::span<const float> gradient;
  Scale scale;
  // Of one variant; the bytes are those of every variant.
  AlignedArray<std::uint64_t> nonzero, negative, decoded_nonzero, decoded_negative;
  AlignedArray<std::int8_t> sums, decoded_sums;
  AlignedArray<std::byte> codes_room, sums_room;
  std::vector<std::span<const std::byte>> codes, sums_coded;  // chunk by chunk; empty: raw was no larger
  double zeros = 0, codes_bits = 0, sums_bits = 0;            // the entropy
  std::size_t codes_bytes = 0, sums_bytes = 0;

  std::size_t elements() const { return gradient.size(); }
  std::size_t chunks() const { return (elements() + kChunk - 1) / kChunk; }
  std::size_t size_of(std::size_t chunk) const { return std::min(kChunk, elements() - chunk * kChunk); }
  ConstPlanes codes_of(std::size_t chunk) const {
    const std::size_t first = chunk * kChunk / kWordBits, words = size_of(chunk) / kWordBits;
    return {nonzero.span().subspan(first, words), negative.span().subspan(first, words)};
  }
  Planes decoded_codes_of(std::size_t chunk) {
    const std::size_t first = chunk * kChunk / kWordBits, words = size_of(chunk) / kWordBits;
    return {decoded_nonzero.span().subspan(first, words), decoded_negative.span().subspan(first, words)};
  }

  void encode_codes(const Kernels& k) {
    codes.clear();
    for (std::size_t c = 0; c < chunks(); ++c) {
      const auto room = codes_room.span().subspan(c * codes_bound(kChunk), codes_bound(size_of(c)));
      const std::array<std::size_t, 1> runs = {size_of(c)};
      codes.push_back(room.first(k.encode_codes_rans(codes_of(c), runs, room)));
    }
  }
  bool decode_codes(const Kernels& k) {
    bool good = true;
    for (std::size_t c = 0; c < chunks(); ++c) {
      const std::array<std::size_t, 1> runs = {size_of(c)};
      good = good && (codes[c].empty() || k.decode_codes_rans(codes[c], runs, decoded_codes_of(c)));
    }
    return good;
  }
  void encode_sums(const Kernels& k) {
    sums_coded.clear();
    const std::size_t stride = sums_bound(kChunk, kMembers);
    for (std::size_t c = 0; c < chunks(); ++c) {
      const auto room = sums_room.span().subspan(c * stride, sums_bound(size_of(c), kMembers));
      const std::array<std::size_t, 1> runs = {size_of(c)};
      const auto from = sums.span().subspan(c * kChunk, size_of(c));
      sums_coded.push_back(room.first(k.encode_sums_rans(from, kMembers, runs, room)));
    }
  }
  bool decode_sums(const Kernels& k) {
    bool good = true;
    for (std::size_t c = 0; c < chunks(); ++c) {
      const std::array<std::size_t, 1> runs = {size_of(c)};
      const auto to = decoded_sums.span().subspan(c * kChunk, size_of(c));
      good = good && (sums_coded[c].empty() || k.decode_sums_rans(sums_coded[c], kMembers, runs, to));
    }
    return good;
  }
};

// Draws the members' codes, the sums of all and the codes of the last, and finds their entropy.
void draw(Subject& s, const Kernels& k) {
  const std::size_t words = s.elements() / kWordBits;
  for (auto* const plane : {&s.nonzero, &s.negative, &s.decoded_nonzero, &s.decoded_negative}) {
    *plane = AlignedArray<std::uint64_t>(words);
  }
  s.sums = AlignedArray<std::int8_t>(s.elements());
  s.decoded_sums = AlignedArray<std::int8_t>(s.elements());
  s.codes_room = AlignedArray<std::byte>(s.chunks() * codes_bound(kChunk));
  s.sums_room = AlignedArray<std::byte>(s.chunks() * sums_bound(kChunk, kMembers));
  for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
    k.ternarize(s.gradient, 0, {.seed = 1, .rank = rank}, s.scale, {s.nonzero.span(), s.negative.span()});
    k.accumulate_planes({s.nonzero.span(), s.negative.span()}, s.sums.span());
  }
  std::size_t all_ones = 0;
  for (std::size_t c = 0; c < s.chunks(); ++c) {
    std::size_t ones = 0, negatives = 0;
    for (const std::uint64_t word : s.codes_of(c).nonzero) ones += static_cast<std::size_t>(std::popcount(word));
    for (const std::uint64_t word : s.codes_of(c).negative) negatives += static_cast<std::size_t>(std::popcount(word));
    const std::size_t size = s.size_of(c);
    s.codes_bits += plogp(size - ones, size) + plogp(negatives, size) + plogp(ones - negatives, size);
    std::array<std::size_t, 2 * kMembers + 1> counts{};
    for (const std::int8_t sum : s.sums.span().subspan(c * kChunk, size))
      ++counts[static_cast<std::size_t>(sum + kMembers)];
    for (const std::size_t count : counts) s.sums_bits += plogp(count, size);
    all_ones += ones;
  }
  s.zeros = 1 - static_cast<double>(all_ones) / static_cast<double>(s.elements());
}

// Codes everything, and says whether it comes back; the sizes count a chunk that is not smaller as raw.
bool comes_back(Subject& s, const Kernels& k) {
  s.encode_codes(k);
  s.encode_sums(k);
  bool good = s.decode_codes(k) && s.decode_sums(k);
  s.codes_bytes = s.sums_bytes = 0;
  std::vector<std::byte> raw(sums_bound(kChunk, kMembers));
  for (std::size_t c = 0; c < s.chunks(); ++c) {
    const auto sums = s.sums.span().subspan(c * kChunk, s.size_of(c));
    const auto decoded_sums = s.decoded_sums.span().subspan(c * kChunk, s.size_of(c));
    const Planes decoded = s.decoded_codes_of(c);
    s.codes_bytes += s.codes[c].empty() ? k.encode_codes(s.codes_of(c), raw) : s.codes[c].size();
    s.sums_bytes += s.sums_coded[c].empty() ? k.encode_sums(sums, kMembers, raw) : s.sums_coded[c].size();
    if (!s.codes[c].empty()) {
      good = good && std::ranges::equal(decoded.nonzero, s.codes_of(c).nonzero) &&
             std::ranges::equal(decoded.negative, s.codes_of(c).negative);
    }
    if (!s.sums_coded[c].empty()) good = good && std::ranges::equal(decoded_sums, sums);
  }
  if (!good) std::fprintf(stderr, "%s: %s does not come back\n", s.name.c_str(), k.name.data());
  return good;
}

// The roof is read from `memory`, which no cache holds.
bool bench_subject(Subject& s, std::span<const float> memory, int rounds) {
  draw(s, *available().front());
  std::vector<Timed> list;
  for (const auto& [name, read] : readers()) {
    list.push_back({name, [memory, read = read] { float_sink = read(memory.data(), memory.size()); }, memory.size()});
  }
  const std::size_t reader_count = list.size();
  for (const Kernels* const k : available()) {
    if (k->name == "scalar") continue;  // slow, and checked by the tests
    if (!comes_back(s, *k)) return false;
    const std::string prefix = std::string(k->name) + " ";
    list.push_back({prefix + "encode_codes_rans", [&s, k] { s.encode_codes(*k); }});
    list.push_back({prefix + "decode_codes_rans", [&s, k] { word_sink = s.decode_codes(*k); }});
    list.push_back({prefix + "encode_sums_rans, 8 members", [&s, k] { s.encode_sums(*k); }});
    list.push_back({prefix + "decode_sums_rans, 8 members", [&s, k] { word_sink = s.decode_sums(*k); }});
  }
  time_all(list, s.elements(), rounds);
  double roof = 0;
  for (std::size_t i = 0; i < reader_count; ++i) roof = std::max(roof, list[i].median());
  std::printf("\n%s: %zu elements in chunks of %zu, %.1f %% zeros; read-and-sum %.2f G/s\n", s.name.c_str(),
              s.elements(), kChunk, s.zeros * 100, roof);
  const double count = static_cast<double>(s.elements());
  print({"codes, size over entropy", static_cast<double>(s.codes_bytes) * 8 / count,
         static_cast<double>(s.codes_bytes) * 8 / s.codes_bits, "bit/element", s.zeros <= 0.851 ? 1.01 : 1.06, true});
  print({"sums of 8, size over entropy", static_cast<double>(s.sums_bytes) * 8 / count,
         static_cast<double>(s.sums_bytes) * 8 / s.sums_bits, "bit/element", 1.03, true});
  for (std::size_t i = reader_count; i < list.size(); ++i) {
    Timed& timed = list[i];
    const double target = timed.name == "avx512 encode_codes_rans"   ? 1.6
                          : timed.name == "avx512 decode_codes_rans" ? 1.2
                                                                     : 0;
    print({timed.name + " over read", timed.median(), timed.median() / roof, "G/s", target, false});
  }
  return true;
}

// What eight members' codes cost a node that updates eight chunks' worth of parameters at a time from memory: its own
// codes as planes, the other seven raw payloads or, decoded before, planes.
struct Receiving {
  explicit Receiving(std::span<const float> gradient_values)
      : gradient(gradient_values),
        parameters(gradient.size()),
        slot(gradient.size()),
        parameters_to(gradient.size()),
        slot_to(gradient.size()) {}

  void draw(const Kernels& k, const Scale& scale) {
    std::vector<std::byte> room(codes_bound(kChunk));
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
      auto& [nonzero, negative] = planes[rank];
      nonzero = AlignedArray<std::uint64_t>(gradient.size() / kWordBits);
      negative = AlignedArray<std::uint64_t>(gradient.size() / kWordBits);
      k.ternarize(gradient, 0, {.seed = 1, .rank = rank}, scale, {nonzero.span(), negative.span()});
      for (std::size_t first = 0; first < gradient.size(); first += kPart) {
        const std::size_t bytes = k.encode_codes(planes_of(rank, first), room);
        std::ranges::copy(std::span(room).first(bytes), payloads[rank].emplace_back(bytes).begin());
      }
    }
  }
  ConstPlanes planes_of(std::size_t rank, std::size_t first) const {
    return {planes[rank].first.span().subspan(first / kWordBits, kPart / kWordBits),
            planes[rank].second.span().subspan(first / kWordBits, kPart / kWordBits)};
  }
  void apply(const Kernels& k, std::size_t raw_members) {
    for (std::size_t first = 0; first < gradient.size(); first += kPart) {
      std::array<std::span<const std::byte>, kMembers> raw;
      std::array<ConstPlanes, kMembers> decoded;
      for (std::size_t m = 0; m < kMembers; ++m) {
        raw[m] = payloads[m][first / kPart].span();
        decoded[m] = planes_of(m, first);
      }
      const Received received{std::span(raw).first(raw_members), std::span(decoded).subspan(raw_members)};
      const auto part = [&](auto& array) { return array.span().subspan(first, kPart); };
      word_sink = k.apply_codes(update(), received, {part(parameters), part(slot), {}},
                                {part(parameters_to), part(slot_to), {}});
    }
  }
  void apply_plain(const Kernels& k) {
    k.apply_floats(update(), gradient, {parameters.span(), slot.span(), {}},
                   {parameters_to.span(), slot_to.span(), {}});
  }
  static Update update() {
    return {.kind = OptimizerKind::kMomentum, .rate = 0.01F, .scale = 0.001F, .momentum = 0.9F, .past_caches = true};
  }

  static constexpr std::size_t kPart = 64 * 1024;
  std::span<const float> gradient;
  AlignedArray<float> parameters, slot, parameters_to, slot_to;
  std::array<std::pair<AlignedArray<std::uint64_t>, AlignedArray<std::uint64_t>>, kMembers> planes;
  std::array<std::vector<AlignedArray<std::byte>>, kMembers> payloads;
};

void bench_receiving(std::span<const float> gradient, const Scale& scale, int rounds) {
  Receiving r(gradient);
  r.draw(*available().front(), scale);
  std::vector<Timed> list;
  for (const Kernels* const k : available()) {
    if (k->name == "scalar") continue;
    const std::string prefix = std::string(k->name) + " ";
    list.push_back({prefix + "apply_floats, momentum", [&r, k] { r.apply_plain(*k); }});
    list.push_back({prefix + "apply_codes, own planes + 7 raw", [&r, k] { r.apply(*k, kMembers - 1); }});
    list.push_back({prefix + "apply_codes, 8 members' planes", [&r, k] { r.apply(*k, 0); }});
  }
  time_all(list, gradient.size(), rounds);
  std::printf("\nthe update from 8 members' codes, %zu elements, over the plain one from a float gradient\n",
              gradient.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double plain = list[i / 3 * 3].median();
    print({list[i].name, list[i].median(), list[i].median() / plain, "G/s", i % 3 == 0 ? 0 : 1.0, false});
  }
}

// A Gaussian, nearly: the sum of four uniform bytes, over its sigma.
AlignedArray<float> made_gradient(std::size_t elements) {
  AlignedArray<float> gradient(elements);
  for (std::size_t i = 0; i < elements; i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i), 1, 2, 3};
    std::uint32_t words[4];
    philox4x32(counter, 1, words);
    for (std::size_t e = 0; e < 4; ++e) {
      int total = -510;
      for (int shift = 0; shift < 32; shift += 8) total += static_cast<int>(words[e] >> shift & 0xFF);
      gradient[i + e] = static_cast<float>(total) / 148;
    }
  }
  return gradient;
}

bool bench_file(const std::string& file, std::span<const float> memory, int rounds) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const std::size_t elements = bytes.size() / sizeof(float);
  if (elements == 0) {
    std::fprintf(stderr, "%s: no floats to read\n", file.c_str());
    return false;
  }
  AlignedArray<float> gradient(padded(elements));
  std::memcpy(gradient.data(), bytes.data(), elements * sizeof(float));
  const Statistics statistics = available().front()->statistics(gradient.span());
  if (!statistics.finite) {
    std::fprintf(stderr, "%s: not all of it is finite\n", file.c_str());
    return false;
  }
  const float clip = clip_bound(statistics, elements, 2.5F);
  Subject subject;
  subject.name = file;
  subject.gradient = gradient.span();
  subject.scale = {clip, std::min(clip, statistics.max_abs)};
  return bench_subject(subject, memory, rounds);
}

}  // namespace

bool bench_codec(std::size_t elements, int rounds, const std::string& gradients_file) {
  const AlignedArray<float> gradient = made_gradient(elements);
  // Clipped at 2.5 sigma, 31.8 % are nonzero; a scaler that is larger by a factor leaves that much fewer.
  for (const float factor : {1.0F, 4.0F, 32.0F}) {
    Subject subject;
    subject.name = "Gaussian, scaler " + std::to_string(static_cast<int>(factor)) + " * 2.5 sigma";
    subject.gradient = gradient.span();
    subject.scale = {2.5F, 2.5F * factor};
    if (!bench_subject(subject, gradient.span(), rounds)) return false;
  }
  bench_receiving(gradient.span(), {2.5F, 2.5F}, rounds);
  return gradients_file.empty() || bench_file(gradients_file, gradient.span(), rounds);
}

}  // namespace tg::kernels

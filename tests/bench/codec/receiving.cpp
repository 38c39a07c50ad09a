#include "tests/bench/codec/receiving.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/codec/subject.h"
#include "tests/bench/row.h"
#include "tests/bench/timing.h"

namespace tg::kernels {
namespace {

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
      k.ternarize(gradient, 0, {.seed = 1, .seat = rank}, scale, {nonzero.span(), negative.span()});
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

}  // namespace

void bench_receiving(const MadeGradient& gradient, int rounds) {
  Receiving r(gradient.values.span());
  r.draw(*available().front(), gradient.scale);
  std::vector<Timed> list;
  for (const Kernels* const k : available()) {
    if (k->name == "scalar") continue;
    const std::string prefix = std::string(k->name) + " ";
    list.push_back({prefix + "apply_floats, momentum", [&r, k] { r.apply_plain(*k); }});
    list.push_back({prefix + "apply_codes, own planes + 7 raw", [&r, k] { r.apply(*k, kMembers - 1); }});
    list.push_back({prefix + "apply_codes, 8 members' planes", [&r, k] { r.apply(*k, 0); }});
  }
  time_all(list, r.gradient.size(), rounds);
  std::printf("\nthe update from 8 members' codes, %zu elements, over the plain one from a float gradient\n",
              r.gradient.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double plain = list[i / 3 * 3].median();
    print({list[i].name, list[i].median(), "G/s", list[i].median() / plain, i % 3 == 0 ? 0 : 1.0, false});
  }
}

}  // namespace tg::kernels

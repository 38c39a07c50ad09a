#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/base/aligned_array.h"
#include "kernels/kernels.h"
#include "kernels/sample_update.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels {
namespace {

constexpr std::array<std::size_t, 6> kLengths = {0, 512, 1024, 1536, 2560, 7 * 512};  // elements, kFold crossed or not
constexpr int kMembers = 5;

// Deterministic inputs: magnitudes over many binary orders, zeros at the end as padding, all from Philox.
class Inputs {
 public:
  explicit Inputs(std::size_t elements)
      : gradient_(elements), parameters_(elements), slot0_(elements), slot1_(elements) {
    const std::size_t real = elements - std::min<std::size_t>(elements, 37);
    for (std::size_t i = 0; i < real; ++i) {
      const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(elements), 0, 0};
      std::uint32_t words[4];
      philox4x32(counter, 0x5EED, words);
      // Exponents -20..-5: from far below the scaler to far above it.
      gradient_[i] = std::bit_cast<float>((words[0] & 0x807FFFFFU) | (107 + (words[1] & 15U)) << 23);
      parameters_[i] = static_cast<float>(static_cast<std::int32_t>(words[2])) * 0x1p-31F;
      slot0_[i] = static_cast<float>(static_cast<std::int32_t>(words[3])) * 0x1p-34F;
      slot1_[i] = static_cast<float>(words[3] ^ words[2]) * 0x1p-40F;
    }
  }
  std::span<const float> gradient() const { return gradient_.span(); }
  std::span<const float> parameters() const { return parameters_.span(); }
  std::span<const float> slot0() const { return slot0_.span(); }
  std::span<const float> slot1() const { return slot1_.span(); }
  std::size_t elements() const { return gradient_.size(); }

 private:
  AlignedArray<float> gradient_, parameters_, slot0_, slot1_;
};

struct PlaneArrays {
  explicit PlaneArrays(std::size_t elements) : nonzero(elements / kWordBits), negative(elements / kWordBits) {}
  Planes planes() { return {nonzero.span(), negative.span()}; }
  ConstPlanes view() const { return {nonzero.span(), negative.span()}; }
  AlignedArray<std::uint64_t> nonzero, negative;
};

template <class T>
bool same(std::span<const T> a, std::span<const T> b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

template <class T>
bool same(const AlignedArray<T>& a, const AlignedArray<T>& b) {
  return same(a.span(), b.span());
}

bool same(const PlaneArrays& a, const PlaneArrays& b) {
  return same(a.nonzero, b.nonzero) && same(a.negative, b.negative);
}

bool same_bytes(const AlignedArray<std::byte>& a, const AlignedArray<std::byte>& b, std::size_t bytes) {
  return same(a.span().first(bytes), b.span().first(bytes));
}

bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool statistics_agree(const Kernels& a, const Kernels& b, std::span<const float> gradient) {
  const Statistics x = a.statistics(gradient);
  const Statistics y = b.statistics(gradient);
  if (!x.finite || !y.finite) return x.finite == y.finite;
  return same(x.sum, y.sum) && same(x.sum_squares, y.sum_squares) &&
         same(static_cast<double>(x.max_abs), static_cast<double>(y.max_abs));
}

bool statistics_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  if (!statistics_agree(a, b, in.gradient())) return false;
  if (in.elements() == 0) return true;
  AlignedArray<float> odd(in.elements());
  for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    std::ranges::copy(in.gradient(), odd.begin());
    odd[in.elements() - 3] = value;
    if (!statistics_agree(a, b, odd.span())) return false;
  }
  return true;
}

// Ternarizes at two scalers, then takes the codes through every function that reads or writes them.
bool codes_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  const std::size_t elements = in.elements();
  for (const float scaler : {0x1.8p-8F, 0x1p-7F}) {
    const DrawKey key{.seed = 0x0123456789ABCDEF, .seat = 3, .segment = 7, .step = 11};
    const Scale scale{.clip = scaler == 0x1p-7F ? std::numeric_limits<float>::infinity() : scaler, .scaler = scaler};
    PlaneArrays x(elements), y(elements), z(elements);
    a.ternarize(in.gradient(), 5 * kBlock, key, scale, x.planes());
    b.ternarize(in.gradient(), 5 * kBlock, key, scale, y.planes());
    if (!same(x, y) || a.count(x.view().nonzero) != b.count(y.view().nonzero)) return false;
    AlignedArray<std::byte> p(codes_bound(elements)), q(codes_bound(elements));
    const std::size_t bytes = a.encode_codes(x.view(), p.span());
    if (bytes != b.encode_codes(y.view(), q.span()) || !same_bytes(p, q, bytes)) return false;
    const auto payload = p.span().first(bytes);
    if (!a.decode_codes(payload, z.planes()) || !same(x, z)) return false;
    AlignedArray<std::int8_t> sums(elements), other(elements);
    if (!a.accumulate_codes(payload, sums.span()) || !b.accumulate_codes(payload, other.span())) return false;
    a.accumulate_planes(x.view(), sums.span());
    b.accumulate_planes(x.view(), other.span());
    if (!same(sums, other)) return false;
    if (bytes > 0 && (a.decode_codes(payload.first(bytes - 1), z.planes()) ||
                      a.accumulate_codes(payload.first(bytes - 1), sums.span()))) {
      return false;
    }
  }
  return true;
}

AlignedArray<std::int8_t> some_sums(std::size_t elements) {
  AlignedArray<std::int8_t> sums(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t mixed = i * 2654435761U >> 7;
    sums[i] = static_cast<std::int8_t>(static_cast<int>(mixed % (2 * kMembers + 1)) - kMembers);
  }
  return sums;
}

bool sums_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  const AlignedArray<std::int8_t> sums = some_sums(in.elements());
  AlignedArray<std::int8_t> x(in.elements());
  AlignedArray<std::byte> p(sums_bound(in.elements(), kMembers)), q(sums_bound(in.elements(), kMembers));
  const std::size_t bytes = a.encode_sums(sums.span(), kMembers, p.span());
  if (bytes != b.encode_sums(sums.span(), kMembers, q.span()) || !same_bytes(p, q, bytes)) return false;
  if (bytes > 0 && a.decode_sums(p.span().first(bytes - 1), kMembers, x.span())) return false;
  return a.decode_sums(p.span().first(bytes), kMembers, x.span()) && same(sums, x);
}

// Sparse codes, and sums of them, in two runs, the second one empty of nonzeros; the longest length has a probability
// per run, the shorter ones may be no smaller than raw. Also from a payload that ends too early.
bool rans_agrees(const Kernels& a, const Kernels& b, std::size_t elements) {
  const std::array<std::size_t, 2> runs = {elements - elements / kBlock / 4 * kBlock, elements / kBlock / 4 * kBlock};
  PlaneArrays codes(elements), decoded(elements);
  AlignedArray<std::int8_t> sums(elements), decoded_sums(elements);
  for (std::size_t i = 0; i < runs[0]; i += 3 + i % 17) {
    codes.nonzero[i / kWordBits] |= std::uint64_t{1} << i % kWordBits;
    codes.negative[i / kWordBits] |= static_cast<std::uint64_t>(i % 5 < 2) << i % kWordBits;
    sums[i] = static_cast<std::int8_t>(static_cast<int>(i % (2 * kMembers + 1)) - kMembers);
  }
  AlignedArray<std::byte> p(sums_bound(elements, kMembers)), q(sums_bound(elements, kMembers));
  std::size_t bytes = a.encode_codes_rans(codes.view(), runs, p.span());
  if (bytes != b.encode_codes_rans(codes.view(), runs, q.span()) || !same_bytes(p, q, bytes)) return false;
  auto payload = p.span().first(bytes);
  if (bytes > 0 && (!a.decode_codes_rans(payload, runs, decoded.planes()) || !same(codes, decoded) ||
                    a.decode_codes_rans(payload.first(bytes - 1), runs, decoded.planes()))) {
    return false;
  }
  bytes = a.encode_sums_rans(sums.span(), kMembers, runs, p.span());
  if (bytes != b.encode_sums_rans(sums.span(), kMembers, runs, q.span()) || !same_bytes(p, q, bytes)) return false;
  payload = p.span().first(bytes);
  return bytes == 0 || (a.decode_sums_rans(payload, kMembers, runs, decoded_sums.span()) && same(sums, decoded_sums) &&
                        !a.decode_sums_rans(payload.first(bytes - 1), kMembers, runs, decoded_sums.span()));
}

// A size on each side of where the lanes' number changes.
bool rans_agrees(const Kernels& a, const Kernels& b) {
  constexpr std::array<std::size_t, 5> kChunks = {0, 512, 8 * 512, 33 * 512, 257 * 512};
  return std::ranges::all_of(kChunks, [&](std::size_t elements) { return rans_agrees(a, b, elements); });
}

struct StateArrays {
  explicit StateArrays(std::size_t elements) : parameters(elements), slot0(elements), slot1(elements) {}
  StateSpan span() { return {parameters.span(), slot0.span(), slot1.span()}; }
  AlignedArray<float> parameters, slot0, slot1;
};

bool same(const StateArrays& a, const StateArrays& b) {
  return same(a.parameters, b.parameters) && same(a.slot0, b.slot0) && same(a.slot1, b.slot1);
}

bool updates_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  const AlignedArray<std::int8_t> sums = some_sums(in.elements());
  const ConstStateSpan from{in.parameters(), in.slot0(), in.slot1()};
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    for (const float weight_decay : {0.0F, 5e-4F}) {
      Update update = sample_update(kind, weight_decay);
      StateArrays x(in.elements()), y(in.elements());
      a.apply_sums(update, sums.span(), from, x.span());
      b.apply_sums(update, sums.span(), from, y.span());
      if (!same(x, y)) return false;
      update.past_caches = true;
      a.apply_floats(update, in.gradient(), from, x.span());
      b.apply_floats(update, in.gradient(), from, y.span());
      if (!same(x, y)) return false;
    }
  }
  return true;
}

// Every combination of these as parameter, slots and gradient: NaNs of all kinds, and what makes new ones.
bool updates_agree_on_nans(const Kernels& a, const Kernels& b) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 5> kinds = {-1, kInfinity, -kInfinity, std::bit_cast<float>(0xFFC00000U),
                                      std::bit_cast<float>(0x7F800001U)};
  constexpr std::size_t kElements = 5 * 5 * 5 * 5 / kBlock * kBlock + kBlock;
  StateArrays from(kElements), x(kElements), y(kElements);
  AlignedArray<float> gradient(kElements), average(kElements), other(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    from.parameters[i] = kinds[i % 5];
    from.slot0[i] = kinds[i / 5 % 5];
    from.slot1[i] = average[i] = other[i] = kinds[i / 25 % 5];
    gradient[i] = kinds[i / 125 % 5];
  }
  const ConstStateSpan view{from.parameters.span(), from.slot0.span(), from.slot1.span()};
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    Update update{.kind = kind, .rate = 1, .scale = 1, .momentum = 1, .beta1 = 1, .one_minus_beta1 = 1, .beta2 = 1};
    for (const bool past_caches : {false, true}) {
      update.past_caches = past_caches;
      a.apply_floats(update, gradient.span(), view, x.span());
      b.apply_floats(update, gradient.span(), view, y.span());
      if (!same(x, y)) return false;
    }
  }
  a.average(from.parameters.span(), 1, average.span());
  b.average(from.parameters.span(), 1, other.span());
  return same(average, other);
}

// Two members' codes, one of them raw.
bool received_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  PlaneArrays codes(in.elements());
  a.ternarize(in.gradient(), 0, {.seed = 1}, {0x1p-7F, 0x1p-7F}, codes.planes());
  AlignedArray<std::byte> room(codes_bound(in.elements()));
  const std::size_t bytes = a.encode_codes(codes.view(), room.span());
  const std::array<std::span<const std::byte>, 1> payloads = {room.span().first(bytes)};
  const std::array<std::span<const std::byte>, 1> shortened = {room.span().first(bytes > 0 ? bytes - 1 : 0)};
  const std::array<ConstPlanes, 1> planes = {codes.view()};
  const ConstStateSpan from{in.parameters(), in.slot0(), in.slot1()};
  const Update update = sample_update(OptimizerKind::kMomentum, 0);
  StateArrays x(in.elements()), y(in.elements());
  if (!a.apply_codes(update, {payloads, planes}, from, x.span())) return false;
  if (!b.apply_codes(update, {payloads, planes}, from, y.span()) || !same(x, y)) return false;
  if (bytes > 0 && a.apply_codes(update, {shortened, planes}, from, x.span())) return false;
  AlignedArray<float> total(in.elements()), other(in.elements());
  a.accumulate_scaled(codes.view(), 0.3F, total.span());
  b.accumulate_scaled(codes.view(), 0.3F, other.span());
  return same(total, other);
}

bool float16_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  AlignedArray<std::byte> p(in.elements() * 2 + 1), q(in.elements() * 2 + 1);
  const auto x = p.span().subspan(1), y = q.span().subspan(1);  // at an odd address
  AlignedArray<float> total(in.elements()), other(in.elements());
  a.encode_float16(in.parameters(), x);
  b.encode_float16(in.parameters(), y);
  if (!same(p, q)) return false;
  a.decode_float16(x, total.span());
  b.decode_float16(x, other.span());
  if (!same(total, other)) return false;
  a.accumulate_float16(x, total.span());
  b.accumulate_float16(x, other.span());
  return same(total, other);
}

bool elementwise_agree(const Kernels& a, const Kernels& b, const Inputs& in) {
  AlignedArray<std::byte> shifted(in.gradient().size_bytes() + 1);  // an addend at an odd address
  if (in.elements() > 0) std::memcpy(shifted.data() + 1, in.gradient().data(), in.gradient().size_bytes());
  std::array<AlignedArray<float>, 2> totals = {AlignedArray<float>(in.elements()), AlignedArray<float>(in.elements())};
  const std::array<const Kernels*, 2> variants = {&a, &b};
  for (std::size_t v = 0; v < 2; ++v) {
    std::ranges::copy(in.parameters(), totals[v].begin());
    variants[v]->accumulate_floats(shifted.span().subspan(1), totals[v].span());
    variants[v]->add_scaled(in.slot0(), 0.7F, totals[v].span());
    variants[v]->average(in.slot1(), 0.3F, totals[v].span());
  }
  if (!same(totals[0], totals[1])) return false;
  constexpr std::uint64_t kFirst = 0xFFFFFC00;  // crosses 2^32
  return a.digest(in.gradient(), kFirst, 0xFEDCBA9876543210) == b.digest(in.gradient(), kFirst, 0xFEDCBA9876543210);
}

}  // namespace

bool self_test(const Kernels& kernels) {
  const Kernels& reference = scalar::kTable;
  return rans_agrees(kernels, reference) && updates_agree_on_nans(kernels, reference) &&
         std::ranges::all_of(kLengths, [&](std::size_t elements) {
           const Inputs in(elements);
           return statistics_agree(kernels, reference, in) && codes_agree(kernels, reference, in) &&
                  sums_agree(kernels, reference, in) && updates_agree(kernels, reference, in) &&
                  received_agree(kernels, reference, in) && float16_agree(kernels, reference, in) &&
                  elementwise_agree(kernels, reference, in);
         });
}

}  // namespace tg::kernels

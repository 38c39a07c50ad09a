#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/sample_update.h"
#include "tests/gpu/checks.h"
#include "tests/gpu/values.h"

namespace tg::gpu {
namespace {

using namespace kernels;

constexpr std::size_t kAlexnet = 61'102'592;  // floats of AlexNet's segments, padding included
constexpr std::size_t kSlice = 512 * 1024;    // as daemon/exchange/gradient_statistics.h cuts them
constexpr std::size_t kPart = 1024 * 1024;    // the reference's unit of work
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kScaler = 2.5F;
constexpr DrawKey kKey{.seed = 0xC0FFEE0123456789, .seat = 5, .segment = 77, .step = 123456};

struct Checks {
  engine::Accelerator& subject;
  MemorySpace& space = subject.space();
  const bool small;
  const Kernels& scalar = *available().back();
  const std::unique_ptr<TensorKernels> kernels = space.make_kernels();

  // No block, one, odd numbers of blocks, a whole fold and beside it, a slice and beside it, a large segment.
  std::vector<std::size_t> lengths() const {
    std::vector<std::size_t> all = {0, 512, 1024, 1536, 2048, 512 * 9, 512 * 33, kSlice - 512, kSlice + 512};
    if (!small) all.insert(all.end(), {5 * kSlice + 1536, kAlexnet});
    return all;
  }

  std::string statistics() const;
  std::string statistics_of_many() const;
  std::string not_finite() const;
  std::string ternarize() const;
  std::string apply(OptimizerKind kind) const;
  std::string apply_planes() const;
  std::string overflow() const;
  std::string add_scaled() const;
  std::string average() const;
  std::string digest() const;
  std::string copies() const;
  std::string memory() const;
  std::string two_threads() const;
  std::string one_after_another() const;
};

std::string bits(double value) { return text("%a", value); }

void same_statistics(const Statistics& got, const Statistics& want, const std::string& where) {
  expect(got.finite == want.finite, where + (got.finite ? ": said to be finite" : ": said not to be finite"));
  if (!want.finite) return;
  const auto same = [&](double a, double b, const char* what) {
    expect(std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b),
           where + ": " + what + " " + bits(a) + " instead of " + bits(b));
  };
  same(got.sum, want.sum, "sum");
  same(got.sum_squares, want.sum_squares, "sum of squares");
  same(got.max_abs, want.max_abs, "largest");
}

template <class T>
void same(std::span<const T> got, std::span<const T> want, const std::string& where) {
  const std::size_t i = first_difference(got, want);
  if (i == got.size()) return;
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  std::size_t count = 0;
  for (std::size_t k = i; k < got.size(); ++k) count += std::bit_cast<Bits>(got[k]) != std::bit_cast<Bits>(want[k]);
  throw Wrong(text("%s: element %zu of %zu is %#llx instead of %#llx, %zu differ", where.c_str(), i, got.size(),
                   static_cast<unsigned long long>(std::bit_cast<Bits>(got[i])),
                   static_cast<unsigned long long>(std::bit_cast<Bits>(want[i])), count));
}

std::string Checks::statistics() const {
  int count = 0;
  for (const std::size_t length : lengths()) {
    for (const float deviation : {1.0F, 1e-3F, 1e-15F}) {
      if (length == kAlexnet && deviation != 1.0F) continue;
      AlignedArray<float> values = awkward(length, length + 1, deviation, 3 * deviation, 1e15F);
      std::fill(values.end() - static_cast<std::ptrdiff_t>(length / 7), values.end(), 0.0F);
      const MemoryArray array = copied_to(space, *kernels, values.span());
      const ConstFloats slice = array.floats();
      Statistics got;
      kernels->statistics({&slice, 1}, {&got, 1});
      same_statistics(got, scalar.statistics(values.span()), text("%zu floats of deviation %g", length, deviation));
      ++count;
    }
  }
  return text("%d ranges", count);
}

// Slices of a gradient in one call, as the exchange asks: whole ones, short ones, and an empty one among them.
std::string Checks::statistics_of_many() const {
  const std::size_t length = small ? 3 * kSlice + 1024 : kAlexnet;
  const AlignedArray<float> values = awkward(length, 5, 0.1F, 0.2F, 1e15F);
  const MemoryArray array = copied_to(space, *kernels, values.span());
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (std::size_t first = 0; first < length; first += kSlice)
    ranges.emplace_back(first, std::min(kSlice, length - first));
  for (const std::size_t count : {512, 0, 1536, 2048, 2560}) ranges.emplace_back(512 * ranges.size(), count);
  std::vector<ConstFloats> slices;
  for (const auto& [first, count] : ranges) slices.push_back(array.floats().subspan(first, count));
  for (const std::size_t together : {slices.size(), std::size_t{1}, std::size_t{3}}) {
    std::vector<Statistics> got(slices.size());
    for (std::size_t i = 0; i < slices.size(); i += together) {
      const std::size_t count = std::min(together, slices.size() - i);
      kernels->statistics(std::span(slices).subspan(i, count), std::span(got).subspan(i, count));
    }
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const auto& [first, count] = ranges[i];
      same_statistics(got[i], scalar.statistics(values.span().subspan(first, count)),
                      text("slice %zu, %zu floats from %zu, %zu in a call", i, count, first, together));
    }
  }
  kernels->statistics({}, {});
  return text("%zu slices", slices.size());
}

std::string Checks::not_finite() const {
  constexpr std::size_t kSlices = 6, kCount = 512 * 5;
  const AlignedArray<float> values = bell(kSlices * kCount, 3, 1);
  MemoryArray array = copied_to(space, *kernels, values.span());
  std::vector<ConstFloats> slices;
  for (std::size_t i = 0; i < kSlices; ++i) slices.push_back(std::as_const(array).floats().subspan(i * kCount, kCount));
  int count = 0;
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{31}, kCount - 1, kCount, 3 * kCount + 777, kSlices * kCount - 1}) {
    for (const float odd : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
      const Floats one = array.floats().subspan(at, 1);
      kernels->copy_in(std::as_bytes(std::span(&odd, 1)), one);
      std::vector<Statistics> got(kSlices);
      kernels->statistics(slices, got);
      for (std::size_t i = 0; i < kSlices; ++i)
        expect(got[i].finite == (i != at / kCount),
               text("%g at %zu: slice %zu is said to be %s", odd, at, i, got[i].finite ? "finite" : "not finite"));
      kernels->copy_in(std::as_bytes(values.span().subspan(at, 1)), one);
      ++count;
    }
  }
  return text("%d places and values", count);
}

std::string Checks::ternarize() const {
  int count = 0;
  const auto compare = [&](const AlignedArray<float>& values, const MemoryArray& array, std::size_t first,
                           Scale scale) {
    PlaneArrays got(values.size()), want(values.size());
    for (std::uint64_t& word : got.nonzero) word = ~std::uint64_t{0};  // every word is written
    for (std::uint64_t& word : got.negative) word = ~std::uint64_t{0};
    kernels->ternarize(array.floats(), first, kKey, scale, got.planes());
    in_parallel(values.size(), kPart, [&](std::size_t begin, std::size_t end) {
      const std::size_t word = begin / kWordBits, words = (end - begin) / kWordBits;
      scalar.ternarize(values.span().subspan(begin, end - begin), first + begin, kKey, scale,
                       {want.nonzero.span().subspan(word, words), want.negative.span().subspan(word, words)});
    });
    const std::string where =
        text("%zu floats from %zu, clip %a, scaler %a", values.size(), first, scale.clip, scale.scaler);
    same<std::uint64_t>(got.nonzero.span(), want.nonzero.span(), where + ", nonzero");
    same<std::uint64_t>(got.negative.span(), want.negative.span(), where + ", negative");
    ++count;
  };
  for (const std::size_t length : lengths()) {
    const AlignedArray<float> values = awkward(length, length + 2, 1, kScaler, std::numeric_limits<float>::max());
    const MemoryArray array = copied_to(space, *kernels, values.span());
    compare(values, array, 0, {kScaler, kScaler});
    if (length == kAlexnet) continue;
    for (const std::size_t first : {std::size_t{0}, std::size_t{512 * 3}, std::size_t{512} * 9000000})
      for (const Scale& scale :
           {Scale{kInfinity, kScaler}, Scale{0.7F, 0.7F}, Scale{0.7F, kScaler}, Scale{kScaler, 0.3F},
            Scale{kInfinity, kSmallestScaler}, Scale{kSmallestScaler, kSmallestScaler},
            Scale{kInfinity, std::nextafter(kSmallestScaler, 0.0F)}, Scale{kInfinity, 0}, Scale{0, kScaler},
            Scale{kInfinity, 1e20F}, Scale{kInfinity, std::numeric_limits<float>::max()}})
        compare(values, array, first, scale);
  }
  return text("%d ranges", count);
}

struct HostState {
  explicit HostState(std::size_t count) : parameters(count), slot0(count), slot1(count) {}
  ConstStateSpan part(OptimizerKind kind, std::size_t begin, std::size_t count) const {
    ConstStateSpan all{parameters.span().subspan(begin, count), {}, {}};
    if (slot_count(kind) > 0) all.slot0 = slot0.span().subspan(begin, count);
    if (slot_count(kind) > 1) all.slot1 = slot1.span().subspan(begin, count);
    return all;
  }
  StateSpan part(OptimizerKind kind, std::size_t begin, std::size_t count) {
    StateSpan all{parameters.span().subspan(begin, count), {}, {}};
    if (slot_count(kind) > 0) all.slot0 = slot0.span().subspan(begin, count);
    if (slot_count(kind) > 1) all.slot1 = slot1.span().subspan(begin, count);
    return all;
  }
  AlignedArray<float> parameters, slot0, slot1;
};

// Moments of 0 and denormal ones among them; a second moment is never negative.
HostState awkward_state(std::size_t count) {
  HostState state(0);
  state.parameters = awkward(count, 21, 0.1F, 1e-38F, 1e10F);
  state.slot0 = awkward(count, 22, 0.01F, 1e-38F, 1e10F);
  state.slot1 = awkward(count, 23, 0.001F, 1e-38F, 1e10F);
  for (float& v : state.slot1) v = std::fabs(v);
  return state;
}

struct State {
  State(MemorySpace& space, TensorKernels& kernels, const HostState& values)
      : parameters(copied_to(space, kernels, values.parameters.span())),
        slot0(copied_to(space, kernels, values.slot0.span())),
        slot1(copied_to(space, kernels, values.slot1.span())) {}
  ConstStateFloats from(OptimizerKind kind) const {
    return {parameters.floats(), slot_count(kind) > 0 ? slot0.floats() : ConstFloats(),
            slot_count(kind) > 1 ? slot1.floats() : ConstFloats()};
  }
  StateFloats to(OptimizerKind kind) {
    return {parameters.floats(), slot_count(kind) > 0 ? slot0.floats() : Floats(),
            slot_count(kind) > 1 ? slot1.floats() : Floats()};
  }
  MemoryArray parameters, slot0, slot1;
};

void same_state(TensorKernels& kernels, OptimizerKind kind, const State& got, const HostState& want,
                const std::string& where) {
  const auto compare = [&](const MemoryArray& one, const AlignedArray<float>& other, const char* name) {
    same<float>(on_host(kernels, one.floats()).span(), other.span(), where + ", " + name);
  };
  compare(got.parameters, want.parameters, "parameters");
  if (slot_count(kind) > 0) compare(got.slot0, want.slot0, "first slot");
  if (slot_count(kind) > 1) compare(got.slot1, want.slot1, "second slot");
}

std::string Checks::apply(OptimizerKind kind) const {
  int count = 0;
  for (const std::size_t length : lengths()) {
    const HostState before = awkward_state(length);
    const State from(space, *kernels, before);
    HostState want(length);
    State got(space, *kernels, want);
    AlignedArray<std::int8_t> sums(length);
    for (std::size_t i = 0; i < length; ++i) sums[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
    const AlignedArray<float> floats = awkward(length, 31, 1, 1e-38F, 1e10F);
    for (const float decay : {0.0F, 5e-4F}) {
      if (length == kAlexnet && decay == 0) continue;
      const Update update = sample_update(kind, decay);
      const std::string where = text("%zu elements, decay %g", length, decay);
      in_parallel(length, kPart, [&](std::size_t begin, std::size_t end) {
        scalar.apply_sums(update, sums.span().subspan(begin, end - begin), before.part(kind, begin, end - begin),
                          want.part(kind, begin, end - begin));
      });
      kernels->apply_sums(update, sums.span(), from.from(kind), got.to(kind));
      same_state(*kernels, kind, got, want, where + ", sums");
      in_parallel(length, kPart, [&](std::size_t begin, std::size_t end) {
        scalar.apply_floats(update, floats.span().subspan(begin, end - begin), before.part(kind, begin, end - begin),
                            want.part(kind, begin, end - begin));
      });
      kernels->apply_floats(update, floats.span(), from.from(kind), got.to(kind));
      same_state(*kernels, kind, got, want, where + ", floats");
      count += 2;
    }
  }
  return text("%d ranges", count);
}

std::string Checks::apply_planes() const {
  int count = 0;
  for (const std::size_t length : lengths()) {
    const HostState before = awkward_state(length);
    const State from(space, *kernels, before);
    HostState want(length);
    State got(space, *kernels, want);
    for (const std::size_t members : {1, 2, 4, 8, 127}) {
      if (members > 4 && length > 5 * kSlice) continue;
      std::vector<PlaneArrays> all;
      for (std::size_t member = 0; member < members; ++member) all.push_back(codes(length, 100 + member));
      std::vector<ConstPlanes> views;
      for (const PlaneArrays& one : all) views.push_back(one.view());
      for (const OptimizerKind kind : values_of<OptimizerKind>()) {
        if (length == kAlexnet && kind != OptimizerKind::kMomentum) continue;
        const Update update = sample_update(kind, 5e-4F);
        in_parallel(length, kPart, [&](std::size_t begin, std::size_t end) {
          std::vector<ConstPlanes> parts;
          for (const ConstPlanes& one : views)
            parts.push_back({one.nonzero.subspan(begin / kWordBits, (end - begin) / kWordBits),
                             one.negative.subspan(begin / kWordBits, (end - begin) / kWordBits)});
          scalar.apply_codes(update, {{}, parts}, before.part(kind, begin, end - begin),
                             want.part(kind, begin, end - begin));
        });
        kernels->apply_planes(update, views, from.from(kind), got.to(kind));
        same_state(*kernels, kind, got, want, text("%zu elements, %zu members, %s", length, members, to_word(kind)));
        ++count;
      }
    }
  }
  return text("%d ranges", count);
}

// What a step that overflows leaves: infinities, and where two of them meet a NaN, the same one everywhere.
std::string Checks::overflow() const {
  constexpr std::size_t kCount = 2048;
  HostState before = awkward_state(kCount);
  AlignedArray<float> floats = awkward(kCount, 32, 1, 1);
  const float odd[] = {kInfinity, -kInfinity, 3e38F, -3e38F};
  for (std::size_t i = 0; i < kCount; i += 3) floats[i] = odd[i % 4];
  for (std::size_t i = 0; i < kCount; i += 5) before.parameters[i] = odd[i % 4];
  for (std::size_t i = 0; i < kCount; i += 7) before.slot0[i] = odd[i % 4];
  for (std::size_t i = 0; i < kCount; i += 11) before.slot1[i] = kInfinity;
  const State from(space, *kernels, before);
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    Update update = sample_update(kind, 5e-4F);
    update.scale = 1;
    HostState want(kCount);
    State got(space, *kernels, want);
    scalar.apply_floats(update, floats.span(), std::as_const(before).part(kind, 0, kCount), want.part(kind, 0, kCount));
    kernels->apply_floats(update, floats.span(), from.from(kind), got.to(kind));
    same_state(*kernels, kind, got, want, to_word(kind));
  }
  return text("%zu rules", values_of<OptimizerKind>().size());
}

std::string Checks::add_scaled() const {
  for (const std::size_t length : lengths()) {
    const AlignedArray<float> parameters = awkward(length, 43, 0.1F, 1e-38F, 1e10F);
    AlignedArray<float> want = awkward(length, 44, 1, 1e-38F, 1e10F);
    const MemoryArray from = copied_to(space, *kernels, parameters.span());
    MemoryArray gradient = copied_to(space, *kernels, want.span());
    kernels->add_scaled(from.floats(), 0.0123F, gradient.floats());
    in_parallel(length, kPart, [&](std::size_t begin, std::size_t end) {
      scalar.add_scaled(parameters.span().subspan(begin, end - begin), 0.0123F,
                        want.span().subspan(begin, end - begin));
    });
    same<float>(on_host(*kernels, gradient.floats()).span(), want.span(), text("%zu floats", length));
  }
  return text("%zu lengths", lengths().size());
}

std::string Checks::average() const {
  for (const std::size_t length : lengths()) {
    for (const float rate : {0.1F, 1.0F, 1e-4F}) {
      const AlignedArray<float> parameters = awkward(length, 45, 0.1F, 1e-38F, 1e10F);
      AlignedArray<float> want = awkward(length, 46, 1, 1e-38F, 1e10F);
      const MemoryArray from = copied_to(space, *kernels, parameters.span());
      MemoryArray mean = copied_to(space, *kernels, want.span());
      kernels->average(from.floats(), rate, mean.floats());
      in_parallel(length, kPart, [&](std::size_t begin, std::size_t end) {
        scalar.average(parameters.span().subspan(begin, end - begin), rate, want.span().subspan(begin, end - begin));
      });
      same<float>(on_host(*kernels, mean.floats()).span(), want.span(), text("%zu floats, rate %g", length, rate));
    }
  }
  return text("%zu lengths", lengths().size());
}

std::string Checks::digest() const {
  int count = 0;
  for (const std::size_t length : lengths()) {
    const AlignedArray<float> values = awkward(length, 47, 1, 1e-38F);
    const MemoryArray array = copied_to(space, *kernels, values.span());
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{4096}, (std::uint64_t{1} << 32) - 1024, std::uint64_t{5} << 32})
      for (const std::uint64_t salt : {std::uint64_t{0}, std::uint64_t{0x123456789ABCDEF0}}) {
        const std::uint64_t got = kernels->digest(array.floats(), first, salt);
        const std::uint64_t want = scalar.digest(values.span(), first, salt);
        expect(got == want,
               text("%zu floats from %llu: %016llx instead of %016llx", length, static_cast<unsigned long long>(first),
                    static_cast<unsigned long long>(got), static_cast<unsigned long long>(want)));
        ++count;
      }
  }
  return text("%d ranges", count);
}

// Copies ranges inside an array to and from bytes that begin anywhere; what lies beside them stays.
std::string Checks::copies() const {
  const std::size_t most = small ? kSlice : kAlexnet;
  for (const std::size_t length : {std::size_t{512}, std::size_t{1}, std::size_t{777}, kSlice, most}) {
    for (const std::size_t shift : {0, 1, 3}) {
      const AlignedArray<float> values = awkward(length, 48, 1, 1);
      std::vector<std::byte> there(length * sizeof(float) + shift), back(there.size());
      std::memcpy(there.data() + shift, values.data(), length * sizeof(float));
      MemoryArray array(space, length + 1024);
      kernels->copy_in(std::span(there).subspan(shift), array.floats().subspan(512, length));
      kernels->copy_out(array.floats().subspan(512, length), std::span(back).subspan(shift));
      expect(there == back, text("%zu floats at byte %zu", length, shift));
      for (const std::size_t beside : {std::size_t{0}, 512 + length})
        for (const float value : on_host(*kernels, array.floats().subspan(beside, 512)))
          expect(value == 0, text("%zu floats: wrote beside them", length));
    }
  }
  return "5 lengths";
}

std::string Checks::memory() const {
  for (const std::size_t count : {std::size_t{1}, std::size_t{512}, kSlice}) {
    for (int repeat = 0; repeat < 3; ++repeat) {  // memory that was used before is zeroed too
      MemoryArray array(space, count);
      expect(reinterpret_cast<std::uintptr_t>(array.floats().address()) % 64 == 0,
             text("%zu floats: not aligned", count));
      for (const float value : on_host(*kernels, array.floats()))
        expect(value == 0, text("%zu floats: not zero", count));
      kernels->copy_in(std::as_bytes(bell(count, 1, 1).span()), array.floats());
    }
  }
  try {
    MemoryArray(space, std::size_t{1} << 50);
  } catch (const std::bad_alloc&) {
    MemoryArray(space, 512);
    return "too much is std::bad_alloc";
  }
  throw Wrong("2^50 floats were given");
}

// Objects of one memory space, each in its thread, on parts of one array: as each alone.
std::string Checks::two_threads() const {
  constexpr std::size_t kThreads = 4;
  const std::size_t part = small ? 512 * 33 : 2 * kSlice + 512;
  const int repeats = small ? 5 : 50;
  const HostState before = awkward_state(kThreads * part);
  const State from(space, *kernels, before);
  HostState want(kThreads * part);
  State got(space, *kernels, want);
  const AlignedArray<float> gradient = bell(kThreads * part, 51, 1);
  const MemoryArray at = copied_to(space, *kernels, gradient.span());
  const Update update = sample_update(OptimizerKind::kMomentum, 5e-4F);
  std::vector<std::string> wrong(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        try {
          const std::unique_ptr<TensorKernels> own = space.make_kernels();
          const std::size_t begin = t * part;
          const ConstFloats slice = at.floats().subspan(begin, part);
          const Statistics expected = scalar.statistics(gradient.span().subspan(begin, part));
          PlaneArrays planes(part), expected_planes(part);
          scalar.ternarize(gradient.span().subspan(begin, part), 0, kKey, {kScaler, kScaler}, expected_planes.planes());
          for (int repeat = 0; repeat < repeats; ++repeat) {
            Statistics measured;
            own->statistics({&slice, 1}, {&measured, 1});
            same_statistics(measured, expected, text("thread %zu, statistics", t));
            own->ternarize(slice, 0, kKey, {kScaler, kScaler}, planes.planes());
            same<std::uint64_t>(planes.nonzero.span(), expected_planes.nonzero.span(), text("thread %zu, codes", t));
            const ConstPlanes view = planes.view();
            const auto cut = [&](const MemoryArray& array) { return array.floats().subspan(begin, part); };
            own->apply_planes(
                update, {&view, 1}, {cut(from.parameters), cut(from.slot0), {}},
                {got.parameters.floats().subspan(begin, part), got.slot0.floats().subspan(begin, part), {}});
          }
          const ConstPlanes view = expected_planes.view();
          scalar.apply_codes(update, {{}, {&view, 1}}, before.part(OptimizerKind::kMomentum, begin, part),
                             want.part(OptimizerKind::kMomentum, begin, part));
        } catch (const std::exception& error) {
          wrong[t] = error.what();
        }
      });
  }
  for (const std::string& one : wrong) expect(one.empty(), one);
  same_state(*kernels, OptimizerKind::kMomentum, got, want, "after all threads");
  return text("%zu threads, %d repeats", kThreads, repeats);
}

// What one object writes in a space is there for the next call of another.
std::string Checks::one_after_another() const {
  const int repeats = small ? 20 : 200;
  const std::size_t length = small ? 512 * 33 : 5 * kSlice;
  const std::unique_ptr<TensorKernels> other = space.make_kernels();
  const AlignedArray<float> first = bell(length, 61, 1), second = bell(length, 62, 1);
  const std::uint64_t digests[] = {scalar.digest(first.span(), 0, 0), scalar.digest(second.span(), 0, 0)};
  const MemoryArray sources[] = {copied_to(space, *kernels, first.span()), copied_to(space, *kernels, second.span())};
  MemoryArray array(space, length);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const AlignedArray<float>& values = repeat % 2 == 0 ? first : second;
    kernels->copy_in(std::as_bytes(values.span()), array.floats());
    expect(other->digest(array.floats(), 0, 0) == digests[repeat % 2], text("copy in %d was not seen", repeat));
    kernels->add_scaled(sources[repeat % 2].floats(), -1, array.floats());
    for (const float value : on_host(*other, array.floats().subspan(length - 512, 512)))
      expect(value == 0, text("sum %d was not seen", repeat));
  }
  return text("%d repeats", repeats);
}

}  // namespace

void check_kernels(Report& report, engine::Accelerator& subject, const CheckOptions& options) {
  const Checks checks{.subject = subject, .small = options.small};
  report.run("kernels.copies", [&] { return checks.copies(); });
  report.run("kernels.memory", [&] { return checks.memory(); });
  report.run("kernels.statistics", [&] { return checks.statistics(); });
  report.run("kernels.statistics_of_many", [&] { return checks.statistics_of_many(); });
  report.run("kernels.not_finite", [&] { return checks.not_finite(); });
  report.run("kernels.ternarize", [&] { return checks.ternarize(); });
  for (const OptimizerKind kind : values_of<OptimizerKind>())
    report.run(std::string("kernels.apply_") + to_word(kind), [&] { return checks.apply(kind); });
  report.run("kernels.apply_planes", [&] { return checks.apply_planes(); });
  report.run("kernels.overflow", [&] { return checks.overflow(); });
  report.run("kernels.add_scaled", [&] { return checks.add_scaled(); });
  report.run("kernels.average", [&] { return checks.average(); });
  report.run("kernels.digest", [&] { return checks.digest(); });
  report.run("kernels.two_threads", [&] { return checks.two_threads(); });
  report.run("kernels.one_after_another", [&] { return checks.one_after_another(); });
}

}  // namespace tg::gpu

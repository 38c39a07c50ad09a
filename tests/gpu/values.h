// Numbers that the kernels are compared on, and loops over them on all processors. From a seed, the same on every run.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "kernels/base/aligned_array.h"
#include "kernels/memory_array.h"
#include "kernels/types.h"

namespace tg::gpu {

// of(begin, end) for parts of [0, count) that begin at multiples of `grain`, several at a time.
void in_parallel(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& of);

// Number i of a stream of pseudo-random ones (SplitMix64).
inline std::uint64_t drawn(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (seed + 1) * 0x9E3779B97F4A7C15 + i * 0xD1342543DE82EF95;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

// The sum of four uniform ones: bell-shaped, of the given deviation, at most 3.5 deviations.
AlignedArray<float> bell(std::size_t count, std::uint64_t seed, float deviation);
// Values as bell draws them, one in eight of them awkward: +0 or -0, a denormal, `edge` or a neighbour of it with
// either sign, or any finite float whose magnitude is at most `most`.
AlignedArray<float> awkward(std::size_t count, std::uint64_t seed, float deviation, float edge, float most = 1e18F);

struct PlaneArrays {
  explicit PlaneArrays(std::size_t elements)
      : nonzero(elements / kernels::kWordBits), negative(elements / kernels::kWordBits) {}
  kernels::Planes planes() { return {nonzero.span(), negative.span()}; }
  kernels::ConstPlanes view() const { return {nonzero.span(), negative.span()}; }
  AlignedArray<std::uint64_t> nonzero, negative;
};
PlaneArrays codes(std::size_t elements, std::uint64_t seed);  // a third of them nonzero

// Index of the first element whose bits differ; count where none does.
template <class T>
std::size_t first_difference(std::span<const T> a, std::span<const T> b);

// Host values copied to a space, and back.
kernels::MemoryArray copied_to(kernels::MemorySpace& space, kernels::TensorKernels& kernels,
                               std::span<const float> values);
AlignedArray<float> on_host(kernels::TensorKernels& kernels, kernels::ConstFloats floats);

template <class T>
std::size_t first_difference(std::span<const T> a, std::span<const T> b) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<Bits>(a[i]) != std::bit_cast<Bits>(b[i])) return i;
  return a.size();
}

}  // namespace tg::gpu

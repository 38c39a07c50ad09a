#include "tests/gpu/values.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

namespace tg::gpu {
namespace {

constexpr std::size_t kGrain = 1 << 16;

float bell_at(std::uint64_t seed, std::size_t i, float deviation) {
  const std::uint64_t bits = drawn(seed, i);
  float sum = -131070;  // 4 * 65535 / 2
  for (int part = 0; part < 4; ++part) sum += static_cast<float>(bits >> 16 * part & 0xffff);
  return sum * (deviation / 37837.5F);  // 65536 * sqrt(4 / 12)
}

float awkward_at(std::uint64_t bits, float edge, float most) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 1) << 31;
  const auto random = static_cast<std::uint32_t>(bits >> 32);
  float size = 0;
  switch (bits >> 1 & 7) {
    case 0:
      break;
    case 1:
    case 2:
      size = std::bit_cast<float>(random & 0x7fffff);
      break;
    case 3:
      size = edge;
      break;
    case 4:
      size = std::nextafter(edge, 0.0F);
      break;
    case 5:
      size = std::nextafter(edge, 2 * edge + 1);
      break;
    default:
      size = std::bit_cast<float>(random & 0x7fffffff);
      if (!(size <= most)) size = std::bit_cast<float>(random & 0x3fffffff);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

}  // namespace

void in_parallel(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& of) {
  const std::size_t parts = (count + grain - 1) / grain;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t part = next++; part < parts; part = next++) of(part * grain, std::min(count, (part + 1) * grain));
  };
  std::vector<std::jthread> others;
  const std::size_t threads = std::min<std::size_t>(parts, std::max(std::thread::hardware_concurrency(), 1U));
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work);
  work();
}

AlignedArray<float> bell(std::size_t count, std::uint64_t seed, float deviation) {
  AlignedArray<float> values(count);
  in_parallel(count, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) values[i] = bell_at(seed, i, deviation);
  });
  return values;
}

AlignedArray<float> awkward(std::size_t count, std::uint64_t seed, float deviation, float edge, float most) {
  AlignedArray<float> values(count);
  in_parallel(count, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t bits = drawn(seed + 77, i);
      values[i] = bits % 8 == 0 ? awkward_at(bits >> 3, edge, most) : bell_at(seed, i, deviation);
    }
  });
  return values;
}

PlaneArrays codes(std::size_t elements, std::uint64_t seed) {
  PlaneArrays made(elements);
  const std::size_t words = made.nonzero.size();
  in_parallel(words, kGrain / 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t word = begin; word < end; ++word) {
      const std::uint64_t a = drawn(seed, 3 * word), b = drawn(seed, 3 * word + 1), c = drawn(seed, 3 * word + 2);
      made.nonzero[word] = (a & b) | (a & c & ~b & drawn(seed + 1, word));
      made.negative[word] = made.nonzero[word] & c;
    }
  });
  return made;
}

kernels::MemoryArray copied_to(kernels::MemorySpace& space, kernels::TensorKernels& kernels,
                               std::span<const float> values) {
  kernels::MemoryArray array(space, values.size());
  kernels.copy_in(std::as_bytes(values), array.floats());
  return array;
}

AlignedArray<float> on_host(kernels::TensorKernels& kernels, kernels::ConstFloats floats) {
  AlignedArray<float> values(floats.size());
  kernels.copy_out(floats, std::as_writable_bytes(values.span()));
  return values;
}

}  // namespace tg::gpu

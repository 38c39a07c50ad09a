#include "daemon/forecast/bench/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/exchange/gradient_statistics.h"
#include "kernels/base/aligned_array.h"
#include "kernels/base/median.h"
#include "kernels/memory_array.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr int kRounds = 9;
constexpr std::size_t kChunk = schema::kLargeChunkParameters;
constexpr int kMembers = static_cast<int>(kMeasuredMembers);
static_assert(kTimedElements % kChunk == 0 && kTimedElements >= kernels::kPastCaches);

// A chunk of uniform magnitudes, so that kMeasuredZeros of the codes are zero at scaler 1. No kernel notices that all
// chunks are alike.
AlignedArray<float> draw_gradient() {
  const auto most = static_cast<float>(2 * (1 - kMeasuredZeros));
  AlignedArray<float> gradient(kChunk);
  for (std::size_t i = 0; i < kChunk; i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i / 4), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kTimedSeed, words);
    for (std::size_t k = 0; k < 4; ++k) gradient[i + k] = (static_cast<float>(words[k] >> 8) * 0x1p-23f - 1.0f) * most;
  }
  return gradient;
}

template <class Call>
double seconds_per(std::size_t elements, Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(elements);
}

template <class Call>
void in_chunks(Call call) {
  for (std::size_t at = 0; at < kTimedElements; at += kChunk) call(at);
}

KernelCosts medians_of(const std::vector<KernelCosts>& rounds) {
  KernelCosts costs;
  for (const KernelCost& kernel : kKernelCosts) {
    std::vector<double> seconds;
    for (KernelCosts round : rounds) seconds.push_back(*kernel.field(round));
    *kernel.field(costs) = median(std::move(seconds));
  }
  return costs;
}

}  // namespace

KernelCosts time_kernels(const kernels::Kernels& kernels, kernels::MemorySpace& space, const std::stop_token& stop) {
  const auto tensors = space.make_kernels();
  std::vector<kernels::MemoryArray> arrays;
  for (int i = 0; i < 5; ++i) arrays.emplace_back(space, kTimedElements);
  const auto part = [&](std::size_t array, std::size_t at) { return arrays[array].floats().subspan(at, kChunk); };
  const AlignedArray<float> drawn = draw_gradient();
  in_chunks([&](std::size_t at) { tensors->copy_in(std::as_bytes(drawn.span()), part(0, at)); });
  std::vector<kernels::ConstFloats> slices;  // as a step has them
  for (std::size_t at = 0; at < kTimedElements; at += GradientStatistics::kSlice)
    slices.push_back(arrays[0].floats().subspan(at, GradientStatistics::kSlice));
  std::vector<kernels::Statistics> statistics(slices.size());

  // Codes, sums and payload of a chunk stay in the host's caches, as they do in a step.
  AlignedArray<std::uint64_t> nonzero(kChunk / kernels::kWordBits), negative(kChunk / kernels::kWordBits);
  AlignedArray<std::int8_t> sums(kChunk);
  const kernels::Planes planes{nonzero.span(), negative.span()};
  const kernels::ConstPlanes codes{nonzero.span(), negative.span()};
  const std::vector<std::size_t> runs{kChunk};
  std::vector<std::byte> payload(std::max(kernels::codes_bound(kChunk), kernels::sums_bound(kChunk, kMembers)));
  std::size_t bytes = 0;
  const auto written = [&] { return std::span<const std::byte>(payload).first(bytes); };
  kernels::Update update;
  update.kind = OptimizerKind::kMomentum;
  update.past_caches = true;

  std::vector<KernelCosts> rounds;
  while (rounds.size() < kRounds && !stop.stop_requested()) {
    KernelCosts& costs = rounds.emplace_back();
    costs.ternarize = seconds_per(kTimedElements, [&] {
      tensors->statistics(slices, statistics);
      in_chunks([&](std::size_t at) { tensors->ternarize(part(0, at), at, {kTimedSeed, 0, 0, 0}, {1, 1}, planes); });
    });
    std::fill(sums.begin(), sums.end(), std::int8_t{0});
    for (std::uint32_t member = 0; member < kMeasuredMembers; ++member) {
      kernels.ternarize(drawn.span(), 0, {kTimedSeed, member, 0, 0}, {1, 1}, planes);
      kernels.accumulate_planes(codes, sums.span());
    }
    costs.sums[0] = seconds_per(2 * kChunk, [&] {
      bytes = kernels.encode_sums(sums.span(), kMembers, payload);
      (void)kernels.decode_sums(written(), kMembers, sums.span());
    });
    costs.sums[1] = seconds_per(2 * kChunk, [&] {
      bytes = kernels.encode_sums_rans(sums.span(), kMembers, runs, payload);
      (void)kernels.decode_sums_rans(written(), kMembers, runs, sums.span());
    });
    costs.apply = seconds_per(kTimedElements, [&] {
      in_chunks([&](std::size_t at) {
        tensors->apply_sums(update, sums.span(), {part(1, at), part(2, at), {}}, {part(3, at), part(4, at), {}});
      });
    });
    bytes = kernels.encode_codes(codes, payload);
    costs.codes[0] = seconds_per(kChunk, [&] {
      (void)kernels.decode_codes(written(), planes);
      kernels.accumulate_planes(codes, sums.span());
    });
    bytes = kernels.encode_codes_rans(codes, runs, payload);
    costs.codes[1] = seconds_per(kChunk, [&] {
      (void)kernels.decode_codes_rans(written(), runs, planes);
      kernels.accumulate_planes(codes, sums.span());
    });
  }
  return medians_of(rounds);
}

}  // namespace tg::daemon

#include "daemon/forecast/bench/kernel_timer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "daemon/exchange/gradient_statistics.h"
#include "kernels/base/check.h"
#include "kernels/base/median.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kSeed = 20171204;
constexpr std::size_t kDrawn = 2u << 20;  // elements; longer arrays repeat them, which no kernel notices

}  // namespace

KernelTimer::KernelTimer(const kernels::Kernels& kernels, std::size_t elements, std::stop_token stop,
                         kernels::Home* device)
    : kernels_(kernels),
      stop_(std::move(stop)),
      chunk_(std::min(elements, schema::kLargeChunkParameters)),
      host_(kernels),
      tensors_((device == nullptr ? host_ : *device).make_kernels()),
      nonzero_(chunk_ / kernels::kWordBits),
      negative_(chunk_ / kernels::kWordBits),
      sums_(chunk_),
      added_(chunk_) {
  TG_CHECK(chunk_ > 0 && elements % kernels::kBlock == 0, elements);
  for (AlignedArray<float>* const array : arrays()) {
    if (stop_.stop_requested()) return;  // each takes its time
    *array = AlignedArray<float>(elements);
  }
  payload_.resize(
      std::max(kernels::codes_bound(chunk_), kernels::sums_bound(chunk_, static_cast<int>(kMeasuredMembers))));
  draw_gradient();
  prepare_sums();
  if (device != nullptr) copy_to_device(*device);
}

std::array<AlignedArray<float>*, 5> KernelTimer::arrays() {
  return {&gradient_, &parameters_from_, &parameters_to_, &slot_from_, &slot_to_};
}

void KernelTimer::copy_to_device(kernels::Home& device) {
  for (const AlignedArray<float>* const array : arrays()) {
    on_device_.emplace_back(device, array->size());
    tensors_->copy_in(std::as_bytes(array->span()), on_device_.back().floats());
  }
}

kernels::Floats KernelTimer::at_home(std::size_t array) {
  if (!on_device_.empty()) return on_device_[array].floats();
  return {arrays()[array]->data(), arrays()[array]->size()};
}

// Uniform magnitudes, so that kMeasuredZeros of the codes are zero at scaler 1.
void KernelTimer::draw_gradient() {
  const auto most = static_cast<float>(2 * (1 - kMeasuredZeros));
  const std::size_t drawn = std::min(gradient_.size(), kDrawn);
  for (std::size_t i = 0; i < drawn; i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i / 4), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kSeed, words);
    for (std::size_t k = 0; k < 4; ++k) gradient_[i + k] = (static_cast<float>(words[k] >> 8) * 0x1p-23f - 1.0f) * most;
  }
  for (std::size_t i = drawn; i < gradient_.size(); i += drawn)
    std::copy_n(gradient_.begin(), std::min(drawn, gradient_.size() - i),
                gradient_.begin() + static_cast<std::ptrdiff_t>(i));
}

void KernelTimer::prepare_sums() {
  const kernels::Planes planes{nonzero_.span(), negative_.span()};
  const kernels::ConstPlanes codes{nonzero_.span(), negative_.span()};
  for (std::uint32_t member = 0; member < kMeasuredMembers && !stop_.stop_requested(); ++member) {
    kernels_.ternarize(gradient_.span().first(chunk_), 0, {kSeed, member, 0, 0}, {1, 1}, planes);
    kernels_.accumulate_planes(codes, sums_.span());
  }
}

KernelCosts KernelTimer::time_all() {
  const int members = static_cast<int>(kMeasuredMembers);
  const std::size_t whole = gradient_.size() / chunk_ * chunk_;
  const std::array<std::size_t, 1> runs = {chunk_};
  const kernels::Planes planes{nonzero_.span(), negative_.span()};
  const kernels::ConstPlanes codes{nonzero_.span(), negative_.span()};
  kernels::Update update;
  update.kind = OptimizerKind::kMomentum;
  update.past_caches = gradient_.size() >= kernels::kPastCaches;
  std::size_t bytes = 0;
  const auto written = [&] { return std::span<const std::byte>(payload_).first(bytes); };
  const auto in_chunks = [&](auto call) {
    for (std::size_t at = 0; at < whole; at += chunk_) call(at);
  };
  const auto time = [&](double& seconds_per_element, std::size_t elements, auto call) {
    if (stop_.stop_requested()) return;
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds_per_element = taken.count() / static_cast<double>(elements);
  };
  KernelCosts costs;
  const kernels::Floats gradient = at_home(0), parameters_from = at_home(1), parameters_to = at_home(2),
                        slot_from = at_home(3), slot_to = at_home(4);
  std::vector<kernels::ConstFloats> slices;  // as a step has them
  for (std::size_t at = 0; at < gradient.size(); at += GradientStatistics::kSlice)
    slices.push_back(gradient.subspan(at, std::min(GradientStatistics::kSlice, gradient.size() - at)));
  std::vector<kernels::Statistics> measured(slices.size());
  time(costs.statistics, gradient.size(), [&] { tensors_->statistics(slices, measured); });
  time(costs.ternarize, whole, [&] {
    in_chunks([&](std::size_t at) {
      tensors_->ternarize(gradient.subspan(at, chunk_), at, {kSeed, 0, 0, 0}, {1, 1}, planes);
    });
  });
  // Payload and sums are touched first. Else only the first coding of each pair would pay for bringing them into a
  // cache.
  bytes = kernels_.encode_sums(sums_.span(), members, payload_);
  time(costs.encode_codes[0], chunk_, [&] { bytes = kernels_.encode_codes(codes, payload_); });
  time(costs.decode_codes[0], chunk_, [&] { (void)kernels_.decode_codes(written(), planes); });
  time(costs.encode_codes[1], chunk_, [&] { bytes = kernels_.encode_codes_rans(codes, runs, payload_); });
  time(costs.decode_codes[1], chunk_, [&] { (void)kernels_.decode_codes_rans(written(), runs, planes); });
  std::fill(added_.begin(), added_.end(), std::int8_t{0});
  time(costs.accumulate, chunk_, [&] { kernels_.accumulate_planes(codes, added_.span()); });
  time(costs.encode_sums[0], chunk_, [&] { bytes = kernels_.encode_sums(sums_.span(), members, payload_); });
  time(costs.decode_sums[0], chunk_, [&] { (void)kernels_.decode_sums(written(), members, sums_.span()); });
  time(costs.encode_sums[1], chunk_, [&] { bytes = kernels_.encode_sums_rans(sums_.span(), members, runs, payload_); });
  time(costs.decode_sums[1], chunk_, [&] { (void)kernels_.decode_sums_rans(written(), members, runs, sums_.span()); });
  time(costs.apply, whole, [&] {
    in_chunks([&](std::size_t at) {
      tensors_->apply_sums(update, sums_.span(),
                           {parameters_from.subspan(at, chunk_), slot_from.subspan(at, chunk_), {}},
                           {parameters_to.subspan(at, chunk_), slot_to.subspan(at, chunk_), {}});
    });
  });
  return costs;
}

void KernelTimer::round() {
  if (stop_.stop_requested()) return;  // there may be no arrays
  const KernelCosts costs = time_all();
  if (!stop_.stop_requested()) rounds_.push_back(costs);
}

KernelCosts KernelTimer::medians() const {
  KernelCosts costs;
  for (const KernelCost& kernel : kKernelCosts) {
    std::vector<double> seconds;
    for (KernelCosts round : rounds_) seconds.push_back(*kernel.field(round));
    *kernel.field(costs) = median(std::move(seconds));
  }
  return costs;
}

}  // namespace tg::daemon

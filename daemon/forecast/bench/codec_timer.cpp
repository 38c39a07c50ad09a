#include "daemon/forecast/bench/codec_timer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

constexpr int kRounds = 5;
constexpr std::uint64_t kSeed = 20171204;

}  // namespace

CodecArrays CodecArrays::first(std::size_t elements) const {
  return {gradient.first(elements), parameters_from.first(elements), parameters_to.first(elements),
          slot_from.first(elements), slot_to.first(elements)};
}

// Uniform in [0, 2 * (1 - zeros)]. The kernels do not see that longer arrays repeat themselves, and drawing all of one
// would take longer than timing it.
void draw_gradient(std::span<float> gradient, double zeros) {
  TG_CHECK(gradient.size() % kernels::kBlock == 0, gradient.size());
  const auto most = static_cast<float>(std::min(2 * (1 - zeros), 1.0));
  const std::size_t drawn = std::min(gradient.size(), kMeasuredElements);
  for (std::size_t i = 0; i < drawn; i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i / 4), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kSeed, words);
    for (std::size_t k = 0; k < 4; ++k) gradient[i + k] = (static_cast<float>(words[k] >> 8) * 0x1p-23f - 1.0f) * most;
  }
  for (std::size_t i = drawn; i < gradient.size(); i += drawn)
    std::copy_n(gradient.begin(), std::min(drawn, gradient.size() - i),
                gradient.begin() + static_cast<std::ptrdiff_t>(i));
}

CodecTimer::CodecTimer(const kernels::Kernels& kernels, const CodecSums& sums, const CodecArrays& arrays,
                       CodecTiming timing)
    : kernels_(kernels),
      what_(sums),
      arrays_(arrays),
      timing_(std::move(timing)),
      chunk_(std::min(arrays.gradient.size(), schema::kLargeChunkParameters)),
      nonzero_(chunk_ / kernels::kWordBits),
      negative_(chunk_ / kernels::kWordBits),
      sums_(chunk_),
      added_(chunk_) {
  TG_CHECK(chunk_ > 0 && arrays.gradient.size() % kernels::kBlock == 0, arrays.gradient.size());
  for (const std::span<float> one : {arrays.parameters_from, arrays.parameters_to, arrays.slot_from, arrays.slot_to})
    TG_CHECK(one.size() == arrays.gradient.size(), one.size(), arrays.gradient.size());
  TG_CHECK(sums.members <= schema::kMostMembers, sums.members);
  payload_.resize(std::max(kernels::codes_bound(chunk_), kernels::sums_bound(chunk_, static_cast<int>(sums.members))));
  prepare_sums();
}

void CodecTimer::prepare_sums() {
  const kernels::Planes planes{nonzero_.span(), negative_.span()};
  const kernels::ConstPlanes codes{nonzero_.span(), negative_.span()};
  for (std::size_t member = 0; member < what_.members && !timing_.stop.stop_requested(); ++member) {
    kernels_.ternarize(arrays_.gradient.first(chunk_), 0, {kSeed, static_cast<std::uint32_t>(member), 0, 0}, {1, 1},
                       planes);
    kernels_.accumulate_planes(codes, sums_.span());
  }
}

CodecCosts CodecTimer::time_all() {
  const int members = static_cast<int>(what_.members);
  const std::size_t whole = arrays_.gradient.size() / chunk_ * chunk_;
  const std::array<std::size_t, 1> runs = {chunk_};
  const kernels::Planes planes{nonzero_.span(), negative_.span()};
  const kernels::ConstPlanes codes{nonzero_.span(), negative_.span()};
  kernels::Update update;
  update.kind = kernels::OptimizerKind::kMomentum;
  update.past_caches = what_.past_caches;
  std::size_t bytes = 0;
  const auto written = [&] { return std::span<const std::byte>(payload_).first(bytes); };
  const auto in_chunks = [&](auto call) {
    for (std::size_t at = 0; at < whole; at += chunk_) call(at);
  };
  const auto time = [&](double& seconds_per_element, std::size_t elements, auto call) {
    if (timing_.stop.stop_requested()) return;
    timing_.before_call();
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds_per_element = taken.count() / static_cast<double>(elements);
  };
  CodecCosts costs;
  time(costs.statistics, arrays_.gradient.size(), [&] { (void)kernels_.statistics(arrays_.gradient); });
  time(costs.ternarize, whole, [&] {
    in_chunks([&](std::size_t at) {
      kernels_.ternarize(arrays_.gradient.subspan(at, chunk_), at, {kSeed, 0, 0, 0}, {1, 1}, planes);
    });
  });
  // Payload and sums are touched first, or the first coding of each pair would pay for what the second finds in a
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
      kernels_.apply_sums(update, sums_.span(),
                          {arrays_.parameters_from.subspan(at, chunk_), arrays_.slot_from.subspan(at, chunk_), {}},
                          {arrays_.parameters_to.subspan(at, chunk_), arrays_.slot_to.subspan(at, chunk_), {}});
    });
  });
  return costs;
}

void CodecTimer::round() {
  const CodecCosts costs = time_all();
  if (!timing_.stop.stop_requested()) rounds_.push_back(costs);
}

void CodecTimer::warm_round() { (void)time_all(); }

CodecCosts CodecTimer::medians() const {
  CodecCosts costs;
  for (const KernelCost& kernel : kKernelCosts) {
    std::vector<double> seconds;
    for (CodecCosts round : rounds_) seconds.push_back(*kernel.field(round));
    *kernel.field(costs) = median(std::move(seconds));
  }
  return costs;
}

CodecCosts measure_codec(const kernels::Kernels& kernels, const CodecCase& what, const CodecTiming& timing) {
  const std::size_t elements = kernels::padded(std::clamp(what.parameters, kLeastChunkParameters, what.most_elements));
  AlignedArray<float> gradient, parameters_from, parameters_to, slot_from, slot_to;
  for (AlignedArray<float>* const array : {&gradient, &parameters_from, &parameters_to, &slot_from, &slot_to}) {
    if (timing.stop.stop_requested()) return {};  // large ones take their time
    *array = AlignedArray<float>(elements);
  }
  draw_gradient(gradient.span(), what.zeros);
  CodecTimer timer(kernels, {what.members, what.parameters >= kernels::kPastCaches},
                   {gradient.span(), parameters_from.span(), parameters_to.span(), slot_from.span(), slot_to.span()},
                   timing);
  timer.warm_round();
  for (int round = 0; round < kRounds && !timing.stop.stop_requested(); ++round) timer.round();
  return timer.medians();
}

}  // namespace tg::daemon

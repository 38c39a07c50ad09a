#include "daemon/measure/cores/codec_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "daemon/exchange/plan/code_bits.h"
#include "kernels/base/aligned_array.h"

namespace tg::daemon {
namespace {

constexpr int kRounds = 5;
constexpr std::uint64_t kSeed = 20171204;

// Seconds of each of the calls, made in turns as a step makes them, so that a call finds the caches as those before it
// left them: the best of the rounds, since whatever disturbs them makes them longer.
template <class... Calls>
std::array<double, sizeof...(Calls)> best_rounds(const CodecTiming& timing, Calls... calls) {
  std::array<double, sizeof...(Calls)> best;
  best.fill(std::numeric_limits<double>::max());
  for (int round = 0; round < kRounds && !timing.stop.stop_requested(); ++round) {
    std::size_t turn = 0;
    const auto one = [&](auto& call) {
      if (timing.stop.stop_requested()) return;
      timing.before_round();
      const auto start = std::chrono::steady_clock::now();
      call();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best[turn] = std::min(best[turn], seconds);
      ++turn;
    };
    (one(calls), ...);
  }
  return best;
}

// Magnitudes such that about `zeros` of the codes are zero at scaler 1: uniform in [0, 2 * (1 - zeros)]. The kernels do
// not see that longer arrays repeat themselves, and drawing all of one would take longer than timing it.
void draw(std::span<float> values, double zeros) {
  const auto most = static_cast<float>(std::min(2 * (1 - zeros), 1.0));
  const std::size_t drawn = std::min(values.size(), kMeasuredElements);
  for (std::size_t i = 0; i < drawn; i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i / 4), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kSeed, words);
    for (std::size_t k = 0; k < 4; ++k) values[i + k] = (static_cast<float>(words[k] >> 8) * 0x1p-23f - 1.0f) * most;
  }
  for (std::size_t i = drawn; i < values.size(); i += drawn)
    std::copy_n(values.begin(), std::min(drawn, values.size() - i), values.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

CodecCosts measure_codec(const kernels::Kernels& kernels, std::size_t parameters, std::size_t members, double zeros,
                         const CodecTiming& timing) {
  const auto seconds_per_element = [&](std::size_t count, auto call) {
    return best_rounds(timing, call)[0] / static_cast<double>(count);
  };
  const std::size_t elements = kernels::padded(std::clamp(parameters, kLeastChunkParameters, timing.most_elements));
  const std::size_t chunk = std::min(elements, schema::kLargeChunkParameters);
  const std::size_t words = chunk / kernels::kWordBits;
  const int n = static_cast<int>(members);
  AlignedArray<float> gradient, parameters_from, parameters_to, slot_from, slot_to;
  for (AlignedArray<float>* const array : {&gradient, &parameters_from, &parameters_to, &slot_from, &slot_to}) {
    if (timing.stop.stop_requested()) return {};  // large ones take their time
    *array = AlignedArray<float>(elements);
  }
  AlignedArray<std::uint64_t> nonzero(words), negative(words);
  AlignedArray<std::int8_t> sums(chunk);
  draw(gradient.span(), zeros);
  const kernels::Planes planes{nonzero.span(), negative.span()};
  const kernels::ConstPlanes codes{nonzero.span(), negative.span()};
  const auto in_chunks = [&](auto call) {
    for (std::size_t at = 0; at + chunk <= elements; at += chunk) call(at);
  };
  CodecCosts costs;
  kernels::Update update;
  update.kind = kernels::OptimizerKind::kMomentum;
  update.past_caches = parameters >= kernels::kPastCaches;
  const auto [statistics, ternarize, apply] = best_rounds(
      timing, [&] { (void)kernels.statistics(gradient.span()); },
      [&] {
        in_chunks([&](std::size_t at) {
          kernels.ternarize(gradient.span().subspan(at, chunk), at, {kSeed, 0, 0, 0}, {1, 1}, planes);
        });
      },
      [&] {
        in_chunks([&](std::size_t at) {
          kernels.apply_sums(update, sums.span(),
                             {parameters_from.span().subspan(at, chunk), slot_from.span().subspan(at, chunk), {}},
                             {parameters_to.span().subspan(at, chunk), slot_to.span().subspan(at, chunk), {}});
        });
      });
  costs.statistics = statistics / static_cast<double>(elements);
  costs.ternarize = ternarize / static_cast<double>(elements / chunk * chunk);
  costs.apply = apply / static_cast<double>(elements / chunk * chunk);
  costs.accumulate = seconds_per_element(chunk, [&] { kernels.accumulate_planes(codes, sums.span()); });
  const std::array<std::size_t, 1> runs = {chunk};
  std::vector<std::byte> payload(std::max(kernels::codes_bound(chunk), kernels::sums_bound(chunk, n)));
  std::size_t bytes = 0;
  const auto written = [&] { return std::span<const std::byte>(payload).first(bytes); };
  costs.encode_codes[0] = seconds_per_element(chunk, [&] { bytes = kernels.encode_codes(codes, payload); });
  costs.decode_codes[0] = seconds_per_element(chunk, [&] { (void)kernels.decode_codes(written(), planes); });
  costs.encode_codes[1] = seconds_per_element(chunk, [&] { bytes = kernels.encode_codes_rans(codes, runs, payload); });
  costs.decode_codes[1] = seconds_per_element(chunk, [&] { (void)kernels.decode_codes_rans(written(), runs, planes); });
  std::fill(sums.begin(), sums.end(), std::int8_t{0});
  for (std::size_t member = 0; member < members; ++member) {  // the sums that N members make
    kernels.ternarize(gradient.span().first(chunk), 0, {kSeed, static_cast<std::uint32_t>(member), 0, 0}, {1, 1},
                      planes);
    kernels.accumulate_planes(codes, sums.span());
  }
  costs.encode_sums[0] = seconds_per_element(chunk, [&] { bytes = kernels.encode_sums(sums.span(), n, payload); });
  costs.decode_sums[0] = seconds_per_element(chunk, [&] { (void)kernels.decode_sums(written(), n, sums.span()); });
  costs.encode_sums[1] =
      seconds_per_element(chunk, [&] { bytes = kernels.encode_sums_rans(sums.span(), n, runs, payload); });
  costs.decode_sums[1] =
      seconds_per_element(chunk, [&] { (void)kernels.decode_sums_rans(written(), n, runs, sums.span()); });
  return costs;
}

CodecSeconds codec_parts(const Plan& plan, const CodecCosts& costs, double zeros) {
  const auto coding = static_cast<std::size_t>(plan.coding);
  const double others = static_cast<double>(plan.members - 1), members = static_cast<double>(plan.members);
  const double here = plan.sharded() ? 1 / members : 1;  // share of the chunks that are summed here
  const double sent = plan.sharded() ? others / members : plan.members > 1 ? 1 : 0;
  double elements = 0;
  for (const ChunkPlan& chunk : plan.chunks) elements += static_cast<double>(chunk.size());
  CodecSeconds seconds;
  seconds.encode = elements * (costs.statistics + costs.ternarize + sent * costs.encode_codes[coding]);
  seconds.decode = elements * here * (others * costs.decode_codes[coding] + members * costs.accumulate);
  seconds.apply = elements * costs.apply;
  if (plan.sharded()) {
    seconds.encode += elements * here * costs.encode_sums[coding];
    seconds.decode += elements * (1 - here) * costs.decode_sums[coding];
  }
  seconds.network = predict_traffic(plan, zeros).sent_bits / 8 * 2 * costs.per_byte;
  return seconds;
}

double codec_seconds(const Plan& plan, const CodecCosts& costs, double zeros) {
  return codec_parts(plan, costs, zeros).total();
}

}  // namespace tg::daemon

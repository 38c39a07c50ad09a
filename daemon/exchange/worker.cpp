#include "daemon/exchange/worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr float kLargestHalf = 65504;

std::size_t float_bytes(GradientFormat format) { return format == GradientFormat::kFloat16 ? 2 : sizeof(float); }

bool sums_floats(const Plan& plan) {
  return !plan.shared_scalers ||
         std::any_of(plan.chunks.begin(), plan.chunks.end(), [](const ChunkPlan& chunk) { return !chunk.ternary(); });
}

}  // namespace

Worker::Worker(const Options& options, const kernels::Kernels& kernels, const engine::SegmentTable& segments,
               Replica& replica, schema::FramePool& pool, Send send)
    : options_(options),
      kernels_(kernels),
      segments_(segments),
      replica_(replica),
      pool_(pool),
      send_(std::move(send)),
      clips_(segments.size()) {}

std::size_t Worker::bytes(const engine::SegmentTable& segments, const Plan& plan) {
  const bool keeps = !plan.sharded() && plan.members > 1;
  const std::size_t codes = (keeps ? segments.padded_count() : plan.longest_chunk) / 8 * 2;
  const std::size_t floats = sums_floats(plan) ? plan.longest_chunk * (sizeof(float) + 2) : 0;
  return codes + PayloadCodec::bytes(plan) + plan.longest_chunk + floats;
}

void Worker::begin_step(const Plan& plan, std::uint64_t step, std::span<const float> gradients,
                        const kernels::Update& update) {
  if (plan_ != &plan) prepare_buffers(plan);
  plan_ = &plan;
  step_ = step;
  gradients_ = gradients;
  update_ = update;
  update_.past_caches = gradients_.size() >= kernels::kPastCaches;
  traffic_ = {};
}

void Worker::prepare_buffers(const Plan& plan) {
  const bool keeps = !plan.sharded() && plan.members > 1;
  const std::size_t words = (keeps ? segments_.padded_count() : plan.longest_chunk) / kernels::kWordBits;
  nonzero_ = AlignedArray<std::uint64_t>(words);
  negative_ = AlignedArray<std::uint64_t>(words);
  sums_ = AlignedArray<std::int8_t>(plan.longest_chunk);
  floats_ = AlignedArray<float>(sums_floats(plan) ? plan.longest_chunk : 0);
  halves_ = AlignedArray<std::byte>(sums_floats(plan) ? plan.longest_chunk * 2 : 0);
  codec_.emplace(kernels_, plan);
}

LocalBucket Worker::measure(std::size_t bucket) {
  const BucketPlan& plan = plan_->buckets[bucket];
  LocalBucket local;
  for (std::size_t s = plan.first_segment; s < plan.last_segment; ++s) {
    const engine::Segment& segment = segments_[s];
    const kernels::Statistics statistics =
        kernels_.statistics(gradients_.subspan(segment.offset, segment.padded_count()));
    // A float16 has no room for more: it would become infinite on the way.
    const bool fits = plan_->formats[s] != GradientFormat::kFloat16 || statistics.max_abs <= kLargestHalf;
    if (!(statistics.finite && fits) && !local.non_finite_segment) local.non_finite_segment = s;
    if (!plan_->ternary(s)) continue;
    const float bound = kernels::clip_bound(statistics, segment.element_count, static_cast<float>(options_.clip_sigma));
    clips_[s] = bound;
    const bool clipped = options_.clip_sigma > 0 && std::isfinite(bound);  // no spread: nothing to clip by
    local.scalers.push_back(options_.repo_recipe && clipped ? bound : std::min(statistics.max_abs, bound));
  }
  return local;
}

// --- codes ---

kernels::Planes Worker::own_codes(const ChunkPlan& chunk) {
  const std::size_t first = keeps_codes() ? chunk.begin / kernels::kWordBits : 0;
  const std::size_t count = chunk.size() / kernels::kWordBits;
  return {nonzero_.span().subspan(first, count), negative_.span().subspan(first, count)};
}

kernels::Planes Worker::ternarize(const ChunkPlan& chunk, const Exchange& exchange) {
  const kernels::Planes codes = own_codes(chunk);
  for (const ChunkPart& part : chunk.parts) {
    const float scaler =
        plan_->shared_scalers ? exchange.scaler(part.segment) : exchange.scaler_of(options_.self, part.segment);
    const kernels::Scale scale{options_.repo_recipe ? scaler : clips_[part.segment], scaler};
    const kernels::DrawKey key{options_.seed, static_cast<std::uint32_t>(options_.self),
                               static_cast<std::uint32_t>(part.segment), static_cast<std::uint32_t>(step_)};
    const std::size_t first = (part.begin - chunk.begin) / kernels::kWordBits, count = part.count / kernels::kWordBits;
    kernels_.ternarize(gradients_.subspan(part.begin, part.count), part.first_in_segment, key, scale,
                       {codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)});
    traffic_.elements += std::min(part.count, segments_[part.segment].element_count - part.first_in_segment);
  }
  traffic_.nonzeros += kernels_.count(codes.nonzero);
  return codes;
}

template <class Write>
std::size_t Worker::send(std::size_t index, schema::ChunkPhase phase, std::size_t bound, const std::vector<Rank>& to,
                         Write write) {
  const schema::FrameHeader header{options_.run_key, options_.view, static_cast<std::uint32_t>(step_)};
  schema::ChunkFrameBuilder builder(header, static_cast<std::uint32_t>(index), phase, bound, pool_);
  const PayloadCodec::Written written = write(builder.payload());
  send_(to, builder.finish(written.bytes, written.format));
  return written.bytes;
}

void Worker::carry_out(const Contribute& work, Exchange& exchange) {
  const ChunkPlan& chunk = plan_->chunks[work.chunk];
  std::size_t bytes = 0;
  if (chunk.ternary()) {
    const kernels::Planes codes = ternarize(chunk, exchange);
    bytes = send(work.chunk, schema::ChunkPhase::kContribution, PayloadCodec::codes_bound(chunk), work.to,
                 [&](std::span<std::byte> payload) {
                   return codec_->write_codes(chunk, {codes.nonzero, codes.negative}, payload);
                 });
  } else {
    const std::size_t size = chunk.size() * float_bytes(chunk.format);
    bytes = send(work.chunk, schema::ChunkPhase::kContribution, size, work.to, [&](std::span<std::byte> payload) {
      return write_floats(chunk.format, gradients_.subspan(chunk.begin, chunk.size()), payload);
    });
  }
  traffic_.contribution_bytes += bytes;
  traffic_.contribution_elements += chunk.size();
  exchange.sent(work.to, bytes);
}

// Every member's codes as planes: codes_, by rank.
std::optional<Rank> Worker::read_codes(const ChunkPlan& chunk, const Contributions& contributions,
                                       const Exchange& exchange) {
  codes_.resize(contributions.size());
  for (Rank rank = 0; rank < contributions.size(); ++rank) {
    if (contributions[rank]) {
      if (!codec_->read_codes(chunk, contributions[rank]->chunk, rank, codes_[rank])) return rank;
      continue;
    }
    const kernels::Planes own = keeps_codes() ? own_codes(chunk) : ternarize(chunk, exchange);
    codes_[rank] = {own.nonzero, own.negative};
  }
  return std::nullopt;
}

std::optional<Rank> Worker::apply_codes(const ChunkPlan& chunk, const Contributions& contributions,
                                        const Exchange& exchange) {
  if (const std::optional<Rank> broken = read_codes(chunk, contributions, exchange)) return broken;
  for (const ChunkPart& part : chunk.parts) {
    const std::size_t first = (part.begin - chunk.begin) / kernels::kWordBits, count = part.count / kernels::kWordBits;
    part_codes_.clear();
    for (const kernels::ConstPlanes& codes : codes_)
      part_codes_.push_back({codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)});
    const bool right =
        kernels_.apply_codes(part_update(part, mean_scale(part, exchange)), {{}, part_codes_},
                             replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
    TG_CHECK(right, part.segment);  // planes cannot break a format
  }
  return std::nullopt;
}

std::optional<Rank> Worker::sum_codes(const ChunkPlan& chunk, const Contributions& contributions,
                                      const Exchange& exchange, std::span<std::int8_t> sums) {
  std::fill(sums.begin(), sums.end(), std::int8_t{0});
  for (Rank rank = 0; rank < contributions.size(); ++rank) {
    if (contributions[rank]) {
      if (!codec_->add_codes(chunk, contributions[rank]->chunk, sums)) return rank;
      continue;
    }
    const kernels::Planes own = keeps_codes() ? own_codes(chunk) : ternarize(chunk, exchange);
    kernels_.accumulate_planes({own.nonzero, own.negative}, sums);
  }
  return std::nullopt;
}

std::optional<Rank> Worker::sum_scaled(const ChunkPlan& chunk, const Contributions& contributions,
                                       const Exchange& exchange, std::span<float> sums) {
  if (const std::optional<Rank> broken = read_codes(chunk, contributions, exchange)) return broken;
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (Rank rank = 0; rank < contributions.size(); ++rank) {
    const kernels::ConstPlanes& codes = codes_[rank];
    for (const ChunkPart& part : chunk.parts) {
      const std::size_t at = part.begin - chunk.begin;
      const std::size_t first = at / kernels::kWordBits, count = part.count / kernels::kWordBits;
      kernels_.accumulate_scaled({codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)},
                                 kernels::applied_scale(exchange.scaler_of(rank, part.segment)),
                                 sums.subspan(at, part.count));
    }
  }
  return std::nullopt;
}

// --- floats ---

PayloadCodec::Written Worker::write_floats(GradientFormat format, std::span<const float> values,
                                           std::span<std::byte> payload) const {
  if (format == GradientFormat::kFloat16) {
    kernels_.encode_halves(values, payload.first(values.size() * 2));
    return {values.size() * 2, schema::PayloadFormat::kFloat16};
  }
  std::memcpy(payload.data(), values.data(), values.size_bytes());
  return {values.size_bytes(), schema::PayloadFormat::kFloat32};
}

void Worker::add_floats(GradientFormat format, std::span<const std::byte> addend, std::span<float> sums) const {
  if (format == GradientFormat::kFloat16)
    kernels_.accumulate_halves(addend, sums);
  else
    kernels_.accumulate_floats(addend, sums);
}

bool Worker::read_floats(const ChunkPlan& chunk, const schema::Chunk& received, std::span<float> values) const {
  if (received.payload.size() != values.size() * float_bytes(chunk.format)) return false;
  if (chunk.format == GradientFormat::kFloat16)
    kernels_.decode_halves(received.payload, values);
  else
    std::memcpy(values.data(), received.payload.data(), values.size_bytes());
  return true;
}

// What the own floats are on the wire: every member adds the same values.
std::span<const std::byte> Worker::own_floats(const ChunkPlan& chunk) {
  const std::span<const float> gradient = gradients_.subspan(chunk.begin, chunk.size());
  if (chunk.format == GradientFormat::kFloat32) return std::as_bytes(gradient);
  const std::span<std::byte> halves = halves_.span().first(chunk.size() * 2);
  kernels_.encode_halves(gradient, halves);
  return halves;
}

std::optional<Rank> Worker::sum_floats(const ChunkPlan& chunk, const Contributions& contributions,
                                       std::span<float> sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (Rank rank = 0; rank < contributions.size(); ++rank) {
    const std::span<const std::byte> addend =
        contributions[rank] ? contributions[rank]->chunk.payload : own_floats(chunk);
    if (addend.size() != chunk.size() * float_bytes(chunk.format)) return rank;
    add_floats(chunk.format, addend, sums);
  }
  if (chunk.format == GradientFormat::kFloat16) {  // the sum is rounded once, whoever made it
    const std::span<std::byte> halves = halves_.span().first(chunk.size() * 2);
    kernels_.encode_halves(sums, halves);
    kernels_.decode_halves(halves, sums);
  }
  return std::nullopt;
}

// --- sums ---

void Worker::carry_out(const Reduce& work, Exchange& exchange) {
  const ChunkPlan& chunk = plan_->chunks[work.chunk];
  if (reads_sums(chunk) && !plan_->sharded()) {
    if (const std::optional<Rank> broken = apply_codes(chunk, work.contributions, exchange))
      return exchange.bad_payload(work.chunk, *broken);
    return exchange.applied(work.chunk);
  }
  const std::span<std::int8_t> sums = sums_.span().first(chunk.size());
  const std::span<float> floats = reads_sums(chunk) ? std::span<float>{} : floats_.span().first(chunk.size());
  const std::optional<Rank> broken = reads_sums(chunk) ? sum_codes(chunk, work.contributions, exchange, sums)
                                     : chunk.ternary() ? sum_scaled(chunk, work.contributions, exchange, floats)
                                                       : sum_floats(chunk, work.contributions, floats);
  if (broken) return exchange.bad_payload(work.chunk, *broken);
  if (!work.to.empty()) {
    const std::size_t bound =
        chunk.ternary() ? PayloadCodec::sums_bound(chunk, options_.members) : chunk.size() * float_bytes(chunk.format);
    const std::size_t bytes =
        send(work.chunk, schema::ChunkPhase::kTotal, bound, work.to, [&](std::span<std::byte> payload) {
          return chunk.ternary() ? codec_->write_sums(chunk, sums, payload)
                                 : write_floats(chunk.format, floats, payload);
        });
    exchange.sent(work.to, bytes);
  }
  if (reads_sums(chunk))
    apply_parts(chunk, sums, exchange);
  else
    apply_parts(chunk, floats);
  exchange.applied(work.chunk);
}

void Worker::carry_out(const Apply& action, Exchange& exchange) {
  const ChunkPlan& chunk = plan_->chunks[action.chunk];
  if (chunk.ternary()) {
    const std::span<std::int8_t> sums = sums_.span().first(chunk.size());
    if (!codec_->read_sums(chunk, action.total.chunk, sums)) return exchange.bad_payload(action.chunk, action.owner);
    apply_parts(chunk, sums, exchange);
  } else {
    const std::span<float> floats = floats_.span().first(chunk.size());
    if (!read_floats(chunk, action.total.chunk, floats)) return exchange.bad_payload(action.chunk, action.owner);
    apply_parts(chunk, floats);
  }
  exchange.applied(action.chunk);
}

kernels::Update Worker::part_update(const ChunkPart& part, float scale) const {
  kernels::Update update = update_;
  update.scale = scale;
  update.weight_decay = segments_[part.segment].decays ? options_.outside_weight_decay : 0.0f;
  return update;
}

// Mean gradient = s' * sums / N.
float Worker::mean_scale(const ChunkPart& part, const Exchange& exchange) const {
  return kernels::applied_scale(exchange.scaler(part.segment)) / static_cast<float>(options_.members);
}

void Worker::apply_parts(const ChunkPlan& chunk, std::span<const std::int8_t> sums, const Exchange& exchange) {
  for (const ChunkPart& part : chunk.parts)
    kernels_.apply_sums(part_update(part, mean_scale(part, exchange)),
                        sums.subspan(part.begin - chunk.begin, part.count), replica_.committed(part.begin, part.count),
                        replica_.next(part.begin, part.count));
}

void Worker::apply_parts(const ChunkPlan& chunk, std::span<const float> sums) {
  const float mean = 1.0f / static_cast<float>(options_.members);
  for (const ChunkPart& part : chunk.parts)
    kernels_.apply_floats(part_update(part, mean), sums.subspan(part.begin - chunk.begin, part.count),
                          replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
}

}  // namespace tg::daemon

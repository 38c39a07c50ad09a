#include "daemon/exchange/worker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace tg::daemon {

Worker::Worker(const Options& options, const kernels::Kernels& kernels, const engine::SegmentTable& segments,
               Replica& replica, schema::FramePool& pool, Send send)
    : options_(options),
      kernels_(kernels),
      segments_(segments),
      replica_(replica),
      pool_(pool),
      send_(std::move(send)),
      clips_(segments.size()),
      nonzero_(segments.padded_count() / kernels::kWordBits),
      negative_(segments.padded_count() / kernels::kWordBits),
      sums_(segments.padded_count()) {}

std::size_t Worker::bytes(const engine::SegmentTable& segments) {
  return segments.padded_count() / 8 * 2 + segments.padded_count();
}

void Worker::begin_step(const Plan& plan, std::uint64_t step, std::span<const float> gradients,
                        const kernels::Update& update) {
  plan_ = &plan;
  step_ = step;
  gradients_ = gradients;
  update_ = update;
  update_.past_caches = gradients_.size() >= kernels::kPastCaches;
  traffic_ = {};
  std::size_t longest = 0;
  bool floats = false;
  for (const ChunkPlan& chunk : plan.chunks) {
    longest = std::max(longest, chunk.size());
    floats = floats || !chunk.ternary;
  }
  if (received_sums_.size() < longest) received_sums_ = AlignedArray<std::int8_t>(longest);
  if (floats && received_floats_.size() < longest) received_floats_ = AlignedArray<float>(longest);
  if (floats && float_sums_.size() == 0) float_sums_ = AlignedArray<float>(segments_.padded_count());
}

LocalBucket Worker::measure(std::size_t bucket) {
  const BucketPlan& plan = plan_->buckets[bucket];
  LocalBucket local;
  for (std::size_t s = plan.first_segment; s < plan.last_segment; ++s) {
    const engine::Segment& segment = segments_[s];
    const kernels::Statistics statistics =
        kernels_.statistics(gradients_.subspan(segment.offset, segment.padded_count()));
    if (!statistics.finite && !local.non_finite_segment) local.non_finite_segment = s;
    if (!plan_->ternary[s]) continue;
    const float bound = kernels::clip_bound(statistics, segment.element_count, static_cast<float>(options_.clip_sigma));
    clips_[s] = bound;
    const bool clipped = options_.clip_sigma > 0 && std::isfinite(bound);  // no spread: nothing to clip by
    local.scalers.push_back(options_.repo_recipe && clipped ? bound : std::min(statistics.max_abs, bound));
  }
  return local;
}

bool Worker::carry_out(const ExchangeAction& action, const Exchange& exchange) {
  return std::visit([&](const auto& one) { return carry_out_one(one, exchange); }, action);
}

schema::FrameHeader Worker::header() const {
  return {options_.run_key, options_.view, static_cast<std::uint32_t>(step_)};
}

kernels::Planes Worker::planes(const ChunkPlan& chunk) {
  const std::size_t first = chunk.begin / kernels::kWordBits, count = chunk.size() / kernels::kWordBits;
  return {nonzero_.span().subspan(first, count), negative_.span().subspan(first, count)};
}

std::span<const std::byte> Worker::gradient_bytes(const ChunkPlan& chunk) const {
  return std::as_bytes(gradients_.subspan(chunk.begin, chunk.size()));
}

bool Worker::carry_out_one(const Contribute& action, const Exchange& exchange) {
  const ChunkPlan& chunk = plan_->chunks[action.chunk];
  if (!chunk.ternary) {
    const std::span<const std::byte> bytes = gradient_bytes(chunk);
    traffic_.contribution_bytes += bytes.size();
    if (action.to.empty()) return true;
    schema::ChunkFrameBuilder builder(header(), static_cast<std::uint32_t>(action.chunk),
                                      schema::ChunkPhase::kContribution, schema::PayloadFormat::kFloat32, bytes.size(),
                                      pool_);
    std::memcpy(builder.payload().data(), bytes.data(), bytes.size());
    send_(action.to, builder.finish(bytes.size()));
    return true;
  }
  const kernels::Planes codes = planes(chunk);
  for (const ChunkPart& part : chunk.parts) {
    const float shared = exchange.scaler(part.segment);
    const kernels::Scale scale{options_.repo_recipe ? shared : clips_[part.segment], shared};
    const kernels::DrawKey key{options_.seed, static_cast<std::uint32_t>(options_.self),
                               static_cast<std::uint32_t>(part.segment), static_cast<std::uint32_t>(step_)};
    const std::size_t first = (part.begin - chunk.begin) / kernels::kWordBits, count = part.count / kernels::kWordBits;
    kernels_.ternarize(gradients_.subspan(part.begin, part.count), part.first_in_segment, key, scale,
                       {codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)});
    traffic_.elements += std::min(part.count, segments_[part.segment].element_count - part.first_in_segment);
  }
  std::uint64_t nonzeros = 0;
  for (const std::uint64_t word : codes.nonzero) nonzeros += static_cast<std::uint64_t>(std::popcount(word));
  traffic_.nonzeros += nonzeros;
  const std::size_t payload_bytes = chunk.size() / 8 + (nonzeros + 7) / 8;
  traffic_.contribution_bytes += payload_bytes;
  if (action.to.empty()) return true;
  schema::ChunkFrameBuilder builder(header(), static_cast<std::uint32_t>(action.chunk),
                                    schema::ChunkPhase::kContribution, schema::PayloadFormat::kCodesRaw,
                                    kernels::codes_bound(chunk.size()), pool_);
  const std::size_t used = kernels_.encode_codes({codes.nonzero, codes.negative}, builder.payload());
  TG_CHECK(used == payload_bytes, used, payload_bytes);
  send_(action.to, builder.finish(used));
  return true;
}

bool Worker::carry_out_one(const Accumulate& action, const Exchange&) {
  const ChunkPlan& chunk = plan_->chunks[action.chunk];
  if (chunk.ternary) {
    const std::span<std::int8_t> sums = sums_.span().subspan(chunk.begin, chunk.size());
    if (action.first) std::fill(sums.begin(), sums.end(), std::int8_t{0});
    if (action.received) return kernels_.accumulate_codes(action.received->chunk.payload, sums);
    const kernels::Planes own = planes(chunk);
    kernels_.accumulate_planes({own.nonzero, own.negative}, sums);
    return true;
  }
  const std::span<float> sums = float_sums_.span().subspan(chunk.begin, chunk.size());
  if (action.first) std::fill(sums.begin(), sums.end(), 0.0f);
  const std::span<const std::byte> addend = action.received ? action.received->chunk.payload : gradient_bytes(chunk);
  if (addend.size() != chunk.size() * sizeof(float)) return false;
  kernels_.accumulate_floats(addend, sums);
  return true;
}

bool Worker::carry_out_one(const SendTotal& action, const Exchange&) {
  const ChunkPlan& chunk = plan_->chunks[action.chunk];
  const auto index = static_cast<std::uint32_t>(action.chunk);
  if (chunk.ternary) {
    const int members = static_cast<int>(options_.members);
    const std::span<const std::int8_t> sums = sums_.span().subspan(chunk.begin, chunk.size());
    schema::ChunkFrameBuilder builder(header(), index, schema::ChunkPhase::kTotal, schema::PayloadFormat::kSumsRaw,
                                      kernels::sums_bound(chunk.size(), members), pool_);
    const std::size_t used = kernels_.encode_sums(sums, members, builder.payload());
    send_(action.to, builder.finish(used));
    return true;
  }
  const std::span<const std::byte> bytes = std::as_bytes(float_sums_.span().subspan(chunk.begin, chunk.size()));
  schema::ChunkFrameBuilder builder(header(), index, schema::ChunkPhase::kTotal, schema::PayloadFormat::kFloat32,
                                    bytes.size(), pool_);
  std::memcpy(builder.payload().data(), bytes.data(), bytes.size());
  send_(action.to, builder.finish(bytes.size()));
  return true;
}

bool Worker::carry_out_one(const Apply& action, const Exchange& exchange) {
  const ChunkPlan& chunk = plan_->chunks[action.chunk];
  if (chunk.ternary) {
    std::span<const std::int8_t> sums = sums_.span().subspan(chunk.begin, chunk.size());
    if (action.received) {
      const std::span<std::int8_t> decoded = received_sums_.span().first(chunk.size());
      if (!kernels_.decode_sums(action.received->chunk.payload, static_cast<int>(options_.members), decoded))
        return false;
      sums = decoded;
    }
    apply_parts(chunk, sums, exchange);
    return true;
  }
  std::span<const float> sums = float_sums_.span().subspan(chunk.begin, chunk.size());
  if (action.received) {
    const std::span<float> decoded = received_floats_.span().first(chunk.size());
    if (action.received->chunk.payload.size() != decoded.size_bytes()) return false;
    std::memcpy(decoded.data(), action.received->chunk.payload.data(), decoded.size_bytes());
    sums = decoded;
  }
  apply_parts(chunk, sums);
  return true;
}

void Worker::apply_parts(const ChunkPlan& chunk, std::span<const std::int8_t> sums, const Exchange& exchange) {
  for (const ChunkPart& part : chunk.parts) {
    kernels::Update update = update_;
    // Mean gradient = s' * sums / N.
    update.scale = kernels::applied_scale(exchange.scaler(part.segment)) / static_cast<float>(options_.members);
    update.weight_decay = segments_[part.segment].decays ? options_.outside_weight_decay : 0.0f;
    kernels_.apply_sums(update, sums.subspan(part.begin - chunk.begin, part.count),
                        replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
  }
}

void Worker::apply_parts(const ChunkPlan& chunk, std::span<const float> sums) {
  for (const ChunkPart& part : chunk.parts) {
    kernels::Update update = update_;
    update.scale = 1.0f / static_cast<float>(options_.members);
    update.weight_decay = segments_[part.segment].decays ? options_.outside_weight_decay : 0.0f;
    kernels_.apply_floats(update, sums.subspan(part.begin - chunk.begin, part.count),
                          replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
  }
}

}  // namespace tg::daemon

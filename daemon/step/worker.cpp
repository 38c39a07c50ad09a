#include "daemon/step/worker.h"

#include <algorithm>
#include <utility>

namespace tg::daemon {
namespace {

bool sums_floats(const Layout& layout) {
  return !layout.shared_scalers || std::any_of(layout.chunks.begin(), layout.chunks.end(),
                                               [](const ChunkLayout& chunk) { return !chunk.coded(); });
}

bool keeps_codes(const Layout& layout) { return !layout.sharded() && layout.members > 1; }

kernels::ConstPlanes part_of(const kernels::ConstPlanes& codes, const ChunkLayout& chunk, const ChunkPart& part) {
  const std::size_t first = (part.begin - chunk.begin) / kernels::kWordBits, count = part.count / kernels::kWordBits;
  return {codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)};
}

}  // namespace

void StepTraffic::add(const StepTraffic& other) {
  contribution_bytes += other.contribution_bytes;
  contribution_elements += other.contribution_elements;
  codes.insert(codes.end(), other.codes.begin(), other.codes.end());
}

// --- inputs ---

void SharedStep::begin_round(const engine::SegmentTable& segments, const Layout& layout_of_round, Round number,
                             kernels::ConstFloats gradient, const kernels::Update& rule) {
  if (layout != &layout_of_round) {
    const std::size_t words = keeps_codes(layout_of_round) ? segments.padded_count() / kernels::kWordBits : 0;
    nonzero = AlignedArray<std::uint64_t>(words);
    negative = AlignedArray<std::uint64_t>(words);
  }
  layout = &layout_of_round;
  round = number;
  gradients = gradient;
  update = rule;
  update.past_caches = gradients.size() >= kernels::kPastCaches;
}

std::size_t SharedStep::bytes(const engine::SegmentTable& segments, const Layout& layout) {
  return keeps_codes(layout) ? segments.padded_count() / 8 * 2 : 0;
}

// --- tasks ---

Worker::Worker(const Options& options, std::unique_ptr<kernels::TensorKernels> tensors,
               const kernels::CodecKernels& codec, const engine::SegmentTable& segments, SharedStep& shared,
               const Scalers& scalers, Replica& replica, schema::FramePool& pool)
    : options_(options),
      tensors_(std::move(tensors)),
      codec_(codec),
      segments_(segments),
      shared_(shared),
      scalers_(scalers),
      replica_(replica),
      pool_(pool) {}

std::size_t Worker::bytes(const Layout& layout) {
  const std::size_t codes = keeps_codes(layout) ? 0 : layout.longest_chunk / 8 * 2;
  const std::size_t floats =
      sums_floats(layout) ? layout.longest_chunk * sizeof(float) + FloatPayload::kScratchBytes : 0;
  return codes + PayloadCodec::bytes(layout) + layout.longest_chunk + floats;
}

std::size_t Worker::room_bytes(const Layout& layout) {
  const std::size_t planes =
      layout.longest_chunk / 4 * (layout.sharded() && layout.shared_scalers ? 1 : layout.members);
  return std::max({planes, layout.longest_chunk, sums_floats(layout) ? layout.longest_chunk * sizeof(float) : 0});
}

void Worker::prepare_buffers() {
  layout_ = shared_.layout;
  const std::size_t words = keeps_codes(*layout_) ? 0 : layout_->longest_chunk / kernels::kWordBits;
  nonzero_ = AlignedArray<std::uint64_t>(words);
  negative_ = AlignedArray<std::uint64_t>(words);
  sums_ = AlignedArray<std::int8_t>(layout_->longest_chunk);
  floats_ = AlignedArray<float>(sums_floats(*layout_) ? layout_->longest_chunk : 0);
  if (sums_floats(*layout_))
    float_payload_.emplace(*tensors_, codec_, FloatPayload::slice_of(options_.host_accessible, layout_->longest_chunk));
  payload_.emplace(codec_, *layout_);
}

TaskResult Worker::execute(const Task& task, const Send& send) {
  if (layout_ != shared_.layout) prepare_buffers();
  if (const auto* reduce = std::get_if<Reduce>(&task)) return execute(*reduce, send);
  if (const auto* contribute = std::get_if<Contribute>(&task)) return execute(*contribute);
  if (const auto* apply = std::get_if<Apply>(&task)) return execute(*apply);
  return execute(std::get<Measure>(task));
}

TaskResult Worker::execute(const Measure& work) {
  std::vector<kernels::ConstFloats> slices;
  for (const Slice& slice : work.slices) slices.push_back(shared_.gradients.subspan(slice.begin, slice.count));
  TaskResult result;
  result.statistics.resize(slices.size());
  tensors_->statistics(slices, result.statistics);
  return result;
}

template <class Write>
MadeFrame Worker::make_frame(std::size_t index, schema::ChunkPhase phase, const std::vector<Rank>& to,
                             std::size_t bound, Write write) {
  schema::FrameHeader header = options_.header;
  header.step = static_cast<std::uint32_t>(shared_.round.value());
  schema::ChunkFrameBuilder builder(header, static_cast<std::uint32_t>(index), phase, bound, pool_);
  const PayloadCodec::Written written = write(builder.payload());
  return {index, to, builder.finish(written.bytes, written.format), written.bytes};
}

TaskResult Worker::execute(const Contribute& work) {
  const ChunkLayout& chunk = layout_->chunks[work.chunk];
  TaskResult result;
  if (chunk.coded()) {
    const kernels::Planes codes = ternarize(chunk, result.traffic);
    result.contribution = make_frame(work.chunk, schema::ChunkPhase::kContribution, work.to,
                                     kernels::codes_bound(chunk.size()), [&](std::span<std::byte> payload) {
                                       return payload_->write_codes(chunk, {codes.nonzero, codes.negative}, payload);
                                     });
  } else {
    const kernels::ConstFloats gradient = shared_.gradients.subspan(chunk.begin, chunk.size());
    result.contribution = make_frame(
        work.chunk, schema::ChunkPhase::kContribution, work.to, FloatPayload::bytes(chunk),
        [&](std::span<std::byte> payload) { return float_payload_->write(chunk.format, gradient, payload); });
  }
  result.traffic.contribution_bytes = result.contribution.payload_bytes;
  result.traffic.contribution_elements = chunk.size();
  result.sent_bytes = result.contribution.payload_bytes * work.to.size();
  return result;
}

TaskResult Worker::execute(const Reduce& work, const Send& send) {
  const ChunkLayout& chunk = layout_->chunks[work.chunk];
  TaskResult result;
  if (!replica_.keeps_state() && work.to.empty()) return result;  // the sums are not needed
  if (reads_sums(chunk) && !layout_->sharded()) {
    result.broken = apply_codes(chunk, work.contributions, result.traffic);
    return result;
  }
  const std::span<std::int8_t> sums = sums_.span().first(chunk.size());
  const std::span<float> floats = reads_sums(chunk) ? std::span<float>{} : floats_.span().first(chunk.size());
  result.broken = reads_sums(chunk) ? sum_codes(chunk, work.contributions, sums, result.traffic)
                  : chunk.coded()   ? sum_scaled(chunk, work.contributions, floats, result.traffic)
                                    : sum_floats(chunk, work.contributions, floats);
  if (result.broken) return result;
  if (!work.to.empty()) {
    const std::size_t bound = chunk.coded() ? kernels::sums_bound(chunk.size(), static_cast<int>(options_.members))
                                            : FloatPayload::bytes(chunk);
    MadeFrame total =
        make_frame(work.chunk, schema::ChunkPhase::kTotal, work.to, bound, [&](std::span<std::byte> payload) {
          return chunk.coded() ? payload_->write_sums(chunk, sums, payload)
                               : float_payload_->write(chunk.format, floats, payload);
        });
    result.sent_bytes = total.payload_bytes * work.to.size();
    send(std::move(total));
  }
  if (!replica_.keeps_state()) return result;
  if (reads_sums(chunk))
    apply_parts(chunk, sums);
  else
    apply_parts(chunk, floats);
  return result;
}

TaskResult Worker::execute(const Apply& work) {
  const ChunkLayout& chunk = layout_->chunks[work.chunk];
  TaskResult result;
  if (!replica_.keeps_state()) return result;
  if (chunk.coded()) {
    const std::span<std::int8_t> sums = sums_.span().first(chunk.size());
    if (payload_->read_sums(chunk, work.total.chunk, sums))
      apply_parts(chunk, sums);
    else
      result.broken = work.owner;
  } else {
    const std::span<float> floats = floats_.span().first(chunk.size());
    if (float_payload_->read(chunk, work.total.chunk.payload, floats))
      apply_parts(chunk, floats);
    else
      result.broken = work.owner;
  }
  return result;
}

// --- codes ---

kernels::Planes Worker::own_codes(const ChunkLayout& chunk) {
  const bool kept = keeps_codes(*layout_);
  const std::size_t first = kept ? chunk.begin / kernels::kWordBits : 0, count = chunk.size() / kernels::kWordBits;
  return {(kept ? shared_.nonzero : nonzero_).span().subspan(first, count),
          (kept ? shared_.negative : negative_).span().subspan(first, count)};
}

kernels::Planes Worker::ternarize(const ChunkLayout& chunk, StepTraffic& traffic) {
  const kernels::Planes codes = own_codes(chunk);
  for (const ChunkPart& part : chunk.parts) {
    const kernels::DrawKey key{options_.seed, options_.seat, static_cast<std::uint32_t>(part.segment),
                               static_cast<std::uint32_t>(shared_.round.value())};
    const std::size_t first = (part.begin - chunk.begin) / kernels::kWordBits, count = part.count / kernels::kWordBits;
    tensors_->ternarize(shared_.gradients.subspan(part.begin, part.count), part.first_in_segment, key,
                        scalers_.scale(part.segment),
                        {codes.nonzero.subspan(first, count), codes.negative.subspan(first, count)});
    traffic.codes.push_back(
        {.segment = part.segment,
         .elements = std::min(part.count, segments_[part.segment].element_count - part.first_in_segment),
         .nonzeros = codec_.count(codes.nonzero.subspan(first, count))});
  }
  return codes;
}

// For the sum: the codes were kept when they were sent, or are made now.
kernels::ConstPlanes Worker::own_codes_now(const ChunkLayout& chunk, StepTraffic& traffic) {
  const kernels::Planes codes = keeps_codes(*layout_) ? own_codes(chunk) : ternarize(chunk, traffic);
  return {codes.nonzero, codes.negative};
}

// Every member's codes as planes: codes_, by rank.
std::optional<Rank> Worker::read_codes(const ChunkLayout& chunk, const Contributions& contributions,
                                       StepTraffic& traffic) {
  codes_.resize(contributions.size());
  for (const Rank rank : contributions.places()) {
    if (!contributions[rank])
      codes_[rank] = own_codes_now(chunk, traffic);
    else if (!payload_->read_codes(chunk, contributions[rank]->chunk, rank.index(), codes_[rank]))
      return rank;
  }
  return std::nullopt;
}

std::optional<Rank> Worker::apply_codes(const ChunkLayout& chunk, const Contributions& contributions,
                                        StepTraffic& traffic) {
  if (apply_raw(chunk, contributions, traffic)) return std::nullopt;
  if (const std::optional<Rank> broken = read_codes(chunk, contributions, traffic)) return broken;
  for (const ChunkPart& part : chunk.parts) {
    part_codes_.clear();
    for (const kernels::ConstPlanes& codes : codes_) part_codes_.push_back(part_of(codes, chunk, part));
    tensors_->apply_planes(part_update(part, mean_scale(part)), part_codes_, replica_.committed(part.begin, part.count),
                           replica_.next(part.begin, part.count));
  }
  return std::nullopt;
}

// What came raw is read by the update itself, where the memory space can, the chunk is one part and nothing breaks its
// format.
bool Worker::apply_raw(const ChunkLayout& chunk, const Contributions& contributions, StepTraffic& traffic) {
  if (chunk.parts.size() != 1 || !tensors_->reads_payloads()) return false;
  payloads_.clear();
  for (const auto& contribution : contributions) {
    if (!contribution) continue;
    if (contribution->chunk.format != schema::PayloadFormat::kCodesRaw) return false;
    payloads_.push_back(contribution->chunk.payload);
  }
  const ChunkPart& part = chunk.parts[0];
  const kernels::ConstPlanes own = own_codes_now(chunk, traffic);
  return tensors_->apply_payloads(part_update(part, mean_scale(part)), {payloads_, {&own, 1}},
                                  replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
}

std::optional<Rank> Worker::sum_codes(const ChunkLayout& chunk, const Contributions& contributions,
                                      std::span<std::int8_t> sums, StepTraffic& traffic) {
  std::fill(sums.begin(), sums.end(), std::int8_t{0});
  for (const Rank rank : contributions.places()) {
    if (!contributions[rank])
      codec_.accumulate_planes(own_codes_now(chunk, traffic), sums);
    else if (!payload_->add_codes(chunk, contributions[rank]->chunk, sums))
      return rank;
  }
  return std::nullopt;
}

std::optional<Rank> Worker::sum_scaled(const ChunkLayout& chunk, const Contributions& contributions,
                                       std::span<float> sums, StepTraffic& traffic) {
  if (const std::optional<Rank> broken = read_codes(chunk, contributions, traffic)) return broken;
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (const Rank rank : contributions.places())
    for (const ChunkPart& part : chunk.parts)
      codec_.accumulate_scaled(part_of(codes_[rank], chunk, part), scalers_.unit(rank, part.segment),
                               sums.subspan(part.begin - chunk.begin, part.count));
  return std::nullopt;
}

// --- floats ---

std::optional<Rank> Worker::sum_floats(const ChunkLayout& chunk, const Contributions& contributions,
                                       std::span<float> sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (const Rank rank : contributions.places()) {
    if (!contributions[rank])
      float_payload_->add(chunk.format, shared_.gradients.subspan(chunk.begin, chunk.size()), sums);
    else if (!float_payload_->add(chunk, contributions[rank]->chunk.payload, sums))
      return rank;
  }
  float_payload_->round(chunk.format, sums);  // the sum too, once, on every member
  return std::nullopt;
}

// --- update ---

kernels::Update Worker::part_update(const ChunkPart& part, float scale) const {
  kernels::Update update = shared_.update;
  update.scale = scale;
  update.weight_decay = segments_[part.segment].decays ? options_.outside_weight_decay : 0.0f;
  return update;
}

// Mean gradient = unit * sum / N.
float Worker::mean_scale(const ChunkPart& part) const {
  return scalers_.unit(part.segment) / static_cast<float>(options_.members);
}

void Worker::apply_parts(const ChunkLayout& chunk, std::span<const std::int8_t> sums) {
  for (const ChunkPart& part : chunk.parts)
    tensors_->apply_sums(part_update(part, mean_scale(part)), sums.subspan(part.begin - chunk.begin, part.count),
                         replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
}

void Worker::apply_parts(const ChunkLayout& chunk, std::span<const float> sums) {
  const float mean = 1.0f / static_cast<float>(options_.members);
  for (const ChunkPart& part : chunk.parts)
    tensors_->apply_floats(part_update(part, mean), sums.subspan(part.begin - chunk.begin, part.count),
                           replica_.committed(part.begin, part.count), replica_.next(part.begin, part.count));
}

}  // namespace tg::daemon

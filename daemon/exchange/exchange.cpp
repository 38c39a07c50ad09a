#include "daemon/exchange/exchange.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "daemon/exchange/compare_digests.h"
#include "kernels/base/check.h"

namespace tg::daemon {
Exchange::Exchange(Options options) : options_(std::move(options)) {
  TG_CHECK(options_.self < members(), options_.self, members());
  shared_scalers_.resize(options_.segment_names.size());
}

std::vector<Rank> Exchange::others() const {
  std::vector<Rank> ranks;
  for (std::size_t r = 1; r < members(); ++r) ranks.push_back((options_.self + r) % members());
  return ranks;
}

schema::FrameHeader Exchange::header() const {
  return {options_.run_key, options_.view, static_cast<std::uint32_t>(local_.step)};
}

void Exchange::send(schema::FrameBody body) {
  if (members() > 1) actions_.push_back(SendFrame{others(), header(), std::move(body)});
}

void Exchange::fail(Rank about, std::string_view phase, std::string message) {
  if (failed_) return;
  failed_ = true;
  actions_.push_back(
      FailRun{schema::Fail{ErrorKind::kRunFailed, options_.names[about], std::string(phase), std::move(message)}});
}

std::vector<ExchangeAction> Exchange::take_actions() { return std::exchange(actions_, {}); }

void Exchange::begin_step(const Plan& plan, LocalStep local) {
  TG_CHECK(plan_ == nullptr && local.step == next_step_, local.step, next_step_);
  plan_ = &plan;
  local_ = std::move(local);
  local_.flags |= std::exchange(next_flags_, 0);
  step_frame_sent_ = false;
  ready_buckets_ = 0;
  applied_count_ = 0;
  step_frames_.assign(members(), std::nullopt);
  step_frame_count_ = 0;
  buckets_.assign(plan.buckets.size(), Bucket{std::vector<bool>(members()), 0, false});
  chunks_.assign(plan.chunks.size(), ChunkState{});
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    chunks_[c].seen.assign(members(), false);
    if (!plan.chunks[c].ternary) chunks_[c].held.assign(members(), std::nullopt);
  }
  std::fill(shared_scalers_.begin(), shared_scalers_.end(), 0.0f);
  for (Early& early : std::exchange(early_, {})) frame(early.from, early.header, early.body, nullptr);
}

void Exchange::add_flags(std::uint32_t flags) {
  if (plan_ != nullptr && !step_frame_sent_)
    local_.flags |= flags;
  else
    next_flags_ |= flags;
}

void Exchange::bucket_ready(std::size_t bucket, LocalBucket local, double loss_sum) {
  TG_CHECK(plan_ != nullptr && bucket == ready_buckets_ && bucket < buckets_.size(), bucket, ready_buckets_);
  if (failed_) return;
  ++ready_buckets_;
  const bool finite = !local.non_finite_segment.has_value();
  const std::uint32_t flags = finite ? 0u : std::uint32_t{schema::kNonFinite};
  const auto segment = static_cast<std::uint32_t>(local.non_finite_segment.value_or(0));
  if (!finite) std::fill(local.scalers.begin(), local.scalers.end(), 0.0f);
  if (bucket == 0) {
    schema::StepFrame frame{local_.rate_bits, local_.flags | flags, segment, loss_sum, local_.digests, local.scalers};
    step_frame_sent_ = true;
    send(frame);
    on_step_frame(options_.self, frame);
  } else {
    send(schema::Scalers{static_cast<std::uint32_t>(bucket), flags, segment, local.scalers});
    on_scalers(options_.self, bucket, flags, segment, local.scalers);
  }
}

void Exchange::frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
                     std::shared_ptr<const void> keep) {
  TG_CHECK(from < members() && from != options_.self, from);
  if (failed_ || header.run != options_.run_key) return;
  if (header.view != options_.view) {
    fail(from, "exchange",
         options_.names[from] + " sent a frame of view " + std::to_string(header.view) + "; this run is in view " +
             std::to_string(options_.view));
    return;
  }
  const std::uint64_t now = plan_ != nullptr ? local_.step : next_step_;
  if (header.step < now) {
    ++stale_frames_;
    return;
  }
  const bool is_chunk = std::holds_alternative<schema::Chunk>(body);
  const bool is_next = plan_ != nullptr ? header.step == now + 1 : header.step == now;
  if (is_next && !is_chunk) {
    // Bounded: one step frame and one scaler frame per bucket from every member can be early, and each is checked when
    // used.
    const auto theirs = std::count_if(early_.begin(), early_.end(), [&](const Early& e) { return e.from == from; });
    if (theirs > static_cast<std::ptrdiff_t>(schema::kMostBuckets))
      return fail(from, "exchange", options_.names[from] + " sends more frames of the next step than it has buckets");
    early_.push_back({from, header, body});
    return;
  }
  if (plan_ == nullptr || header.step != now) {
    fail(from, "exchange",
         options_.names[from] + " is in step " + std::to_string(header.step) + " while " +
             options_.names[options_.self] + " is in step " + std::to_string(now) +
             ": members may differ by one step at most");
    return;
  }
  if (const auto* step_frame = std::get_if<schema::StepFrame>(&body)) {
    on_step_frame(from, *step_frame);
  } else if (const auto* scalers = std::get_if<schema::Scalers>(&body)) {
    if (scalers->bucket == 0 || scalers->bucket >= buckets_.size()) {
      fail(from, "scaler wait",
           options_.names[from] + " sent scalers of bucket " + std::to_string(scalers->bucket) +
               ", which is not in the plan");
      return;
    }
    on_scalers(from, scalers->bucket, scalers->flags, scalers->non_finite_segment, scalers->scalers);
  } else if (const auto* chunk = std::get_if<schema::Chunk>(&body)) {
    on_chunk(from, *chunk, std::move(keep));
  }
}

void Exchange::on_step_frame(Rank from, const schema::StepFrame& frame) {
  if (step_frames_[from].has_value()) {
    fail(from, "scaler wait", options_.names[from] + " sent two step frames in step " + std::to_string(local_.step));
    return;
  }
  if (frame.rate_bits != local_.rate_bits) {
    fail(from, "scaler wait",
         "learning rates differ in step " + std::to_string(local_.step) + ": " + options_.names[from] + " has " +
             std::to_string(std::bit_cast<float>(frame.rate_bits)) + ", " + options_.names[options_.self] + " has " +
             std::to_string(std::bit_cast<float>(local_.rate_bits)));
    return;
  }
  step_frames_[from] = frame;
  ++step_frame_count_;
  if (step_frame_count_ == members()) check_digests();
  on_scalers(from, 0, frame.flags, frame.non_finite_segment, frame.scalers);
}

void Exchange::on_scalers(Rank from, std::size_t bucket, std::uint32_t flags, std::uint32_t non_finite_segment,
                          const std::vector<float>& scalers) {
  const BucketPlan& plan = plan_->buckets[bucket];
  Bucket& state = buckets_[bucket];
  if (flags & schema::kNonFinite) {
    const std::string segment = non_finite_segment < options_.segment_names.size()
                                    ? options_.segment_names[non_finite_segment]
                                    : std::to_string(non_finite_segment);
    fail(from, "backward",
         "the gradient of " + segment + " on " + options_.names[from] + " is not finite in step " +
             std::to_string(local_.step) + "; lower the learning rate or look at that node's data");
    return;
  }
  if (state.announced[from] || scalers.size() != plan.ternary_segments.size()) {
    fail(
        from, "scaler wait",
        options_.names[from] + " sent " + std::to_string(scalers.size()) + " scalers of bucket " +
            std::to_string(bucket) +
            (state.announced[from] ? " twice" : " where the plan has " + std::to_string(plan.ternary_segments.size())));
    return;
  }
  state.announced[from] = true;
  ++state.announced_count;
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    float& shared = shared_scalers_[plan.ternary_segments[i]];
    shared = std::max(shared, scalers[i]);  // eq. (4)
  }
  if (state.announced_count == members()) open_bucket(bucket);
}

void Exchange::open_bucket(std::size_t bucket) {
  buckets_[bucket].open = true;
  const BucketPlan& plan = plan_->buckets[bucket];
  const std::size_t count = plan.last_chunk - plan.first_chunk;
  // Staggered: each member begins with the chunks of the next rank, so that no owner is everybody's first.
  for (std::size_t i = 0; i < count && !failed_; ++i)
    contribute(plan.first_chunk + (i + (options_.self + 1) * count / members()) % count);
}

void Exchange::contribute(std::size_t index) {
  const ChunkPlan& chunk = plan_->chunks[index];
  if (!plan_->sharded()) {
    actions_.push_back(Contribute{index, others()});
  } else if (chunk.owner != options_.self) {
    actions_.push_back(Contribute{index, {chunk.owner}});
    return;
  } else {
    actions_.push_back(Contribute{index, {}});
  }
  on_contribution(options_.self, index, {});
}

void Exchange::on_chunk(Rank from, const schema::Chunk& chunk, std::shared_ptr<const void> keep) {
  const std::string who = options_.names[from] + " sent chunk " + std::to_string(chunk.chunk);
  if (chunk.chunk >= chunks_.size()) {
    fail(from, "reduce", who + ", which is not in the plan of " + std::to_string(chunks_.size()));
    return;
  }
  const ChunkPlan& plan = plan_->chunks[chunk.chunk];
  const bool total = chunk.phase == schema::ChunkPhase::kTotal;
  const bool to_me = total ? plan_->sharded() && plan.owner == from && buckets_[plan.bucket].open
                           : !plan_->sharded() || plan.owner == options_.self;
  const schema::PayloadFormat expected = !plan.ternary ? schema::PayloadFormat::kFloat32
                                         : total       ? schema::PayloadFormat::kSumsRaw
                                                       : schema::PayloadFormat::kCodesRaw;
  if (!to_me || chunk.format != expected) {
    fail(from, total ? "gather" : "reduce",
         who + (to_me ? " in a format that the plan does not have" : " to the wrong member"));
    return;
  }
  if (!total) {
    on_contribution(from, chunk.chunk, {chunk, std::move(keep)});
    return;
  }
  if (chunks_[chunk.chunk].applied) {
    fail(from, "gather", who + "'s total twice");
    return;
  }
  actions_.push_back(Apply{chunk.chunk, from, ReceivedChunk{chunk, std::move(keep)}});
  applied(chunk.chunk);
}

void Exchange::on_contribution(Rank from, std::size_t index, ReceivedChunk received) {
  ChunkState& state = chunks_[index];
  if (state.seen[from]) {
    fail(from, "reduce", options_.names[from] + " sent chunk " + std::to_string(index) + " twice");
    return;
  }
  state.seen[from] = true;
  ++state.seen_count;
  std::optional<ReceivedChunk> theirs;
  if (from != options_.self) theirs = std::move(received);
  if (plan_->chunks[index].ternary) {
    actions_.push_back(Accumulate{index, from, state.accumulated == 0, std::move(theirs)});
    ++state.accumulated;
  } else {
    state.held[from] = std::move(theirs);
    advance_sums(index);
  }
  if (state.accumulated == members()) complete_sums(index);
}

void Exchange::advance_sums(std::size_t index) {
  ChunkState& state = chunks_[index];
  while (state.accumulated < members() && state.seen[state.accumulated]) {
    const Rank rank = state.accumulated;
    actions_.push_back(Accumulate{index, rank, rank == 0, std::exchange(state.held[rank], std::nullopt)});
    ++state.accumulated;
  }
}

void Exchange::complete_sums(std::size_t index) {
  if (plan_->sharded()) actions_.push_back(SendTotal{index, others()});
  actions_.push_back(Apply{index, options_.self, std::nullopt});
  applied(index);
}

void Exchange::applied(std::size_t index) {
  chunks_[index].applied = true;
  ++applied_count_;
  try_commit();
}

void Exchange::bad_payload(std::size_t chunk, Rank from) {
  fail(from, "reduce",
       "the payload of chunk " + std::to_string(chunk) + " from " + options_.names[from] +
           " breaks its format in step " + std::to_string(local_.step));
}

// All step frames are in.
void Exchange::check_digests() {
  std::vector<std::vector<std::uint64_t>> digests;
  for (const auto& frame : step_frames_) digests.push_back(frame->digests);
  const auto difference =
      compare_digests(options_.names, options_.segment_names, digests, "before step " + std::to_string(local_.step));
  if (!difference || failed_) return;
  failed_ = true;
  actions_.push_back(FailRun{*difference});
}

void Exchange::try_commit() {
  if (failed_ || applied_count_ < chunks_.size()) return;
  TG_CHECK(step_frame_count_ == members(), step_frame_count_);
  CommitStep commit{local_.step, 0, 0};
  for (const auto& frame : step_frames_) {
    commit.flags |= frame->flags;
    commit.loss_sum += frame->loss_sum;
  }
  actions_.push_back(commit);
  plan_ = nullptr;
  next_step_ = local_.step + 1;
}

Exchange::Waiting Exchange::waiting() const {
  Waiting waiting;
  if (plan_ == nullptr || !announced_all()) return waiting;
  const auto add = [&](Rank rank) {
    if (std::find(waiting.ranks.begin(), waiting.ranks.end(), rank) == waiting.ranks.end())
      waiting.ranks.push_back(rank);
  };
  for (const Bucket& bucket : buckets_) {
    if (bucket.open) continue;
    waiting.phase = schema::Phase::kScalerWait;
    for (Rank r = 0; r < members(); ++r)
      if (!bucket.announced[r]) add(r);
    return waiting;
  }
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const bool mine = !plan_->sharded() || plan_->chunks[c].owner == options_.self;
    if (!mine || chunks_[c].applied) continue;
    waiting.phase = schema::Phase::kReduce;
    for (Rank r = 0; r < members(); ++r)
      if (!chunks_[c].seen[r]) add(r);
  }
  if (!waiting.ranks.empty()) return waiting;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].applied) continue;
    waiting.phase = schema::Phase::kGather;
    add(plan_->chunks[c].owner);
  }
  return waiting;
}

}  // namespace tg::daemon

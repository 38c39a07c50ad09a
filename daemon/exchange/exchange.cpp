#include "daemon/exchange/exchange.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "daemon/exchange/compare_digests.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// Coded or not is the sender's choice, chunk by chunk; whether it is codes, sums or floats is the plan's.
bool fits(schema::PayloadFormat sent, GradientFormat planned, bool total) {
  using enum schema::PayloadFormat;
  switch (planned) {
    case GradientFormat::kTernary:
      return total ? sent == kSumsRaw || sent == kSumsRans : sent == kCodesRaw || sent == kCodesRans;
    case GradientFormat::kFloat32:
      return sent == kFloat32;
    case GradientFormat::kFloat16:
      return sent == kFloat16;
  }
  return false;
}

// Bytes of payload, for the credit while it is being made: Gaussian gradients have 0.17 per code, sums two to three
// bits.
std::size_t expected_bytes(const ChunkPlan& chunk, bool total) {
  if (chunk.ternary()) return total ? chunk.size() * 3 / 8 : chunk.size() / 6;
  return chunk.size() * (chunk.format == GradientFormat::kFloat16 ? 2 : sizeof(float));
}

}  // namespace

Exchange::Exchange(Options options)
    : options_(std::move(options)), scalers_(options_.names.size(), options_.segment_names.size()) {
  TG_CHECK(options_.self < members(), options_.self, members());
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
  if (members() > 1) actions_.push_back(SendToMembers{others(), header(), std::move(body)});
}

void Exchange::fail(Rank about, std::string_view phase, std::string message) {
  if (failed_) return;
  failed_ = true;
  schema::Fail cause{ErrorKind::kRunFailed, options_.names[about], std::string(phase), std::move(message)};
  actions_.emplace_back(std::in_place_type<FailRun>, std::move(cause));
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
  buckets_.assign(plan.buckets.size(),
                  Bucket{std::vector<bool>(members()), 0, false, std::vector<std::size_t>(members())});
  owed_.assign(members(), Owed{});
  chunks_.assign(plan.chunks.size(), ChunkState{});
  for (ChunkState& chunk : chunks_) {
    chunk.held.assign(members(), std::nullopt);
    chunk.missing = members() - 1;
  }
  count_frames();
  scalers_.begin_step();
  credit_.begin_step(members(), plan.window_bytes, plan.credit_every_bytes());
  to_contribute_.assign(plan.buckets.size(), {});
  to_reduce_.assign(plan.buckets.size(), {});
  TG_CHECK(to_apply_.empty());
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
  const bool is_gate = std::holds_alternative<schema::StepFrame>(body) || std::holds_alternative<schema::Scalers>(body);
  const bool is_next = plan_ != nullptr ? header.step == now + 1 : header.step == now;
  if (is_next && is_gate) {
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
  } else if (const auto* credit = std::get_if<schema::Credit>(&body)) {
    on_credit(from, *credit);
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
  for (std::size_t i = 0; i < scalers.size(); ++i) scalers_.announced(from, plan.ternary_segments[i], scalers[i]);
  if (state.announced_count == members()) open_bucket(bucket);
}

std::vector<Rank> Exchange::receivers(const ChunkPlan& chunk) const {
  return plan_->sharded() ? std::vector<Rank>{chunk.owner} : others();
}

void Exchange::open_bucket(std::size_t bucket) {
  buckets_[bucket].open = true;
  count_owed(bucket);
  const BucketPlan& plan = plan_->buckets[bucket];
  // Staggered: of every members() chunks in a row, which have an owner each, a member begins with the next rank's. So
  // no owner is everybody's first, and what is summed comes together.
  std::vector<std::size_t> order(plan.last_chunk - plan.first_chunk);
  std::iota(order.begin(), order.end(), plan.first_chunk);
  const auto turn = [&](std::size_t index) {
    const std::size_t row = (index - plan.first_chunk) / members();
    return std::pair(row, (plan_->chunks[index].owner + members() - 1 - options_.self) % members());
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return turn(a) < turn(b); });
  for (const std::size_t index : order) {
    const bool sums_here = members() == 1 || (plan_->sharded() && plan_->chunks[index].owner == options_.self);
    if (!sums_here) {
      to_contribute_[bucket].push_back(index);
      continue;
    }
    chunks_[index].contributed = true;  // the own codes are made when they are summed
    reduce_if_complete(index);
  }
}

void Exchange::reduce_if_complete(std::size_t index) {
  ChunkState& state = chunks_[index];
  const ChunkPlan& chunk = plan_->chunks[index];
  if (plan_->sharded() && chunk.owner != options_.self) return;
  if (state.missing > 0 || !state.contributed || state.reducing) return;
  state.reducing = true;
  to_reduce_[chunk.bucket].push_back(index);
}

// --- credit ---

std::uint64_t Exchange::bytes_on_their_way() const { return credit_.bytes_on_their_way(); }

void Exchange::on_credit(Rank from, const schema::Credit& credit) {
  if (credit_.granted(from, credit.taken_bytes)) return;
  fail(from, "exchange",
       options_.names[from] + " gives credit for " + std::to_string(credit.taken_bytes) + " bytes where " +
           std::to_string(credit_.sent_to(from)) + " were sent");
}

// --- work ---

std::optional<ExchangeWork> Exchange::next_work() {
  if (plan_ == nullptr || failed_) return std::nullopt;
  if (!to_apply_.empty()) {
    Apply apply = std::move(to_apply_.front());
    to_apply_.pop_front();
    return apply;
  }
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    if (auto reduce = next_reduce(b)) return reduce;
    if (auto contribute = next_contribution(b)) return contribute;
  }
  return std::nullopt;
}

std::optional<Reduce> Exchange::next_reduce(std::size_t bucket) {
  std::deque<std::size_t>& queue = to_reduce_[bucket];
  std::vector<Rank> to = plan_->sharded() ? others() : std::vector<Rank>{};
  if (queue.empty() || !credit_.lasts(to)) return std::nullopt;
  const std::size_t index = queue.front();
  queue.pop_front();
  credit_.reserve(to, expected_bytes(plan_->chunks[index], true));
  return Reduce{index, std::move(chunks_[index].held), std::move(to)};
}

std::optional<Contribute> Exchange::next_contribution(std::size_t bucket) {
  std::deque<std::size_t>& queue = to_contribute_[bucket];
  const bool to_all = !plan_->sharded() && credit_.lasts(others());
  for (auto at = queue.begin(); at != queue.end(); ++at) {
    const std::size_t index = *at;
    if (plan_->sharded() ? !credit_.lasts(plan_->chunks[index].owner) : !to_all) continue;
    std::vector<Rank> to = receivers(plan_->chunks[index]);
    queue.erase(at);
    credit_.reserve(to, expected_bytes(plan_->chunks[index], false));
    return Contribute{index, std::move(to)};
  }
  return std::nullopt;
}

void Exchange::contributed(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes) {
  credit_.sent(to, payload_bytes, expected_bytes(plan_->chunks[chunk], false));
  for (const Rank r : to) --to_send_[r];
  chunks_[chunk].contributed = true;
  reduce_if_complete(chunk);
}

void Exchange::total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes) {
  credit_.sent(to, payload_bytes, expected_bytes(plan_->chunks[chunk], true));
  for (const Rank r : to) --to_send_[r];
}

// --- chunks ---

void Exchange::on_chunk(Rank from, const schema::Chunk& chunk, std::shared_ptr<const void> keep) {
  const std::string who = options_.names[from] + " sent chunk " + std::to_string(chunk.chunk);
  const bool total = chunk.phase == schema::ChunkPhase::kTotal;
  const std::string_view phase = total ? "gather" : "reduce";
  if (chunk.chunk >= chunks_.size())
    return fail(from, phase, who + ", which is not in the plan of " + std::to_string(chunks_.size()));
  const ChunkPlan& plan = plan_->chunks[chunk.chunk];
  ChunkState& state = chunks_[chunk.chunk];
  const bool to_me = total ? plan_->sharded() && plan.owner == from && buckets_[plan.bucket].open
                           : !plan_->sharded() || plan.owner == options_.self;
  if (!to_me) return fail(from, phase, who + " to the wrong member");
  if (!fits(chunk.format, plan.format, total))
    return fail(from, phase, who + " in a format that the plan does not have");
  if (total && !state.contributed)
    return fail(from, phase, who + ", summed without the codes of " + options_.names[options_.self]);
  if (total ? state.total_came : state.reducing || state.held[from].has_value())
    return fail(from, phase, who + " twice");
  --to_come_[from];
  const auto taken = credit_.took(from, chunk.payload.size());
  if (taken && to_come_[from] > 0)  // else the peer has sent us all of this step
    actions_.push_back(SendToMembers{{from}, header(), schema::Credit{*taken}});
  if (total) {
    state.total_came = true;
    --owed_[from].totals;
    to_apply_.push_back({chunk.chunk, from, {chunk, std::move(keep)}});
    return;
  }
  state.held[from] = ReceivedChunk{chunk, std::move(keep)};
  --state.missing;
  Bucket& bucket = buckets_[plan.bucket];
  if (bucket.open)
    --owed_[from].contributions;
  else
    ++bucket.early[from];
  reduce_if_complete(chunk.chunk);
}

void Exchange::applied(std::size_t index) {
  TG_CHECK(plan_ != nullptr && !chunks_[index].applied, index);
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

std::optional<std::uint32_t> Exchange::flags() const {
  if (plan_ == nullptr || step_frame_count_ < members()) return std::nullopt;
  std::uint32_t flags = 0;
  for (const auto& frame : step_frames_) flags |= frame->flags;
  return flags;
}

void Exchange::try_commit() {
  if (failed_ || applied_count_ < chunks_.size()) return;
  TG_CHECK(step_frame_count_ == members(), step_frame_count_);
  CommitStep commit{local_.step, *flags(), 0};
  for (const auto& frame : step_frames_) commit.loss_sum += frame->loss_sum;
  actions_.emplace_back(commit);
  plan_ = nullptr;
  next_step_ = local_.step + 1;
}

}  // namespace tg::daemon

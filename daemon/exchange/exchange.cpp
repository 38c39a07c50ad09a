#include "daemon/exchange/exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/base/check.h"

namespace tg::daemon {

Exchange::Exchange(const Members& members, const engine::SegmentTable& segments, const CodeRule& rule,
                   BatchStatistics statistics, Round first_round)
    : members_(members),
      announcements_(members, rule, std::move(statistics)),
      statistics_(segments, rule),
      transfers_(members),
      next_round_(first_round) {
  local_.round = first_round;
}

// --- a round, from its beginning to its commit ---

void Exchange::begin_round(const Layout& layout, LocalRound local) {
  TG_CHECK(layout_ == nullptr && local.round == next_round_, local.round.value(), next_round_.value());
  layout_ = &layout;
  local_ = std::move(local);
  local_.flags |= std::exchange(next_flags_, 0);
  step_frame_sent_ = false;
  ready_buckets_ = announced_buckets_ = 0;
  announcements_.begin_round(layout, local_.round, local_.rate_bits);
  statistics_.begin_round(layout);
  transfers_.begin_round(layout, local_.round);
  for (Announcements::NextRoundFrame& kept : announcements_.take_next_round_frames())
    on_frame(kept.from, kept.header, kept.body, nullptr);
}

void Exchange::on_gradient_ready(std::size_t bucket, double loss_sum, std::vector<float> statistics) {
  TG_CHECK(layout_ != nullptr && bucket == ready_buckets_ && bucket < layout_->buckets.size(), bucket, ready_buckets_);
  ++ready_buckets_;
  if (bucket == 0) measured_ = std::move(statistics);
  statistics_.ready(bucket, loss_sum);
}

void Exchange::on_measured(const Measure& work, std::span<const kernels::Statistics> statistics) {
  statistics_.on_measured(work, statistics);
  while (std::optional<LocalBucket> bucket = statistics_.take()) announce(*std::move(bucket));
}

void Exchange::announce(LocalBucket local) {
  if (failed_) return;
  ++announced_buckets_;
  announcements_.set_own_clips(local.bucket, local.clips);
  if (local.bucket == 0 && !local.non_finite_segment)  // our own statistics are numbered after the segments
    if (const auto found = announcements_.batch_statistics().first_not_finite(measured_))
      local.non_finite_segment = layout_->bucket_of_segment.size() + *found;
  const bool finite = !local.non_finite_segment.has_value();
  const std::uint32_t flags = finite ? 0u : std::uint32_t{schema::kNonFinite};
  const auto segment = static_cast<std::uint32_t>(local.non_finite_segment.value_or(0));
  if (!finite) std::fill(local.scalers.begin(), local.scalers.end(), 0.0f);
  schema::FrameBody body;
  if (local.bucket == 0) {
    step_frame_sent_ = true;
    if (!finite) measured_.clear();
    body = schema::StepFrame{
        local_.rate_bits,         local_.flags | flags,        segment, local.loss_sum, local_.digests,
        std::move(local.scalers), std::exchange(measured_, {})};
  } else {
    body = schema::Scalers{static_cast<std::uint32_t>(local.bucket), flags, segment, std::move(local.scalers)};
  }
  if (members_.count() > 1) actions_.push_back(Send{members_.others(), members_.header(local_.round), body});
  announcement(members_.self, body);
}

void Exchange::announcement(Rank from, const schema::FrameBody& body) {
  const auto* step_frame = std::get_if<schema::StepFrame>(&body);
  const auto* scalers = std::get_if<schema::Scalers>(&body);
  fail(step_frame != nullptr ? announcements_.on_step_frame(from, *step_frame)
                             : announcements_.on_scalers(from, *scalers));
  const std::size_t bucket = step_frame != nullptr ? 0 : scalers->bucket;
  if (failed_) return;
  if (step_frame != nullptr)
    if (const std::optional<std::uint32_t> all = flags()) actions_.emplace_back(ConfirmState{local_.round, *all});
  if (announcements_.complete(bucket)) transfers_.open(bucket);
}

void Exchange::on_frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
                        std::shared_ptr<const void> keep) {
  TG_CHECK(from.index() < members_.count() && from != members_.self, from.index());
  if (failed_) return;
  const Round now = layout_ != nullptr ? local_.round : next_round_;
  const Round of(header.step);
  if (of < now) return;  // a late answer to what is over
  const bool announces =
      std::holds_alternative<schema::StepFrame>(body) || std::holds_alternative<schema::Scalers>(body);
  const bool is_next = layout_ != nullptr ? of == now.next() : of == now;
  if (is_next && announces) return fail(announcements_.keep_for_next_round({from, header, body}));
  if (layout_ == nullptr || of != now)
    return fail(members_.cause(from, "exchange",
                               members_.names[from] + " is in step " + std::to_string(header.step) + " while " +
                                   members_.own_name() + " is in step " + std::to_string(now.value()) +
                                   ": members may differ by one step at most"));
  if (announces) return announcement(from, body);
  if (const auto* credit = std::get_if<schema::Credit>(&body)) return fail(transfers_.on_credit(from, *credit));
  if (const auto* chunk = std::get_if<schema::Chunk>(&body)) {
    Transfers::Taken taken = transfers_.on_chunk(from, *chunk, std::move(keep));
    give_credit(from, taken.credit);
    fail(std::move(taken.wrong));
  }
}

void Exchange::give_credit(Rank to, std::optional<std::uint64_t> taken_bytes) {
  if (taken_bytes) actions_.push_back(Send{{to}, members_.header(local_.round), schema::Credit{*taken_bytes}});
}

std::optional<Task> Exchange::next_task(ThreadRole role) {
  if (layout_ == nullptr || failed_) return std::nullopt;
  // While the link is busy, the only thread has time to measure the next bucket.
  const bool first = role == ThreadRole::kOnlyThread && transfers_.link_is_busy() && !transfers_.has_totals();
  if (first && statistics_.has_next()) return statistics_.next();
  if (std::optional<Task> task = transfers_.next()) {
    if (const auto* apply = std::get_if<Apply>(&*task)) give_credit(apply->owner, transfers_.handed_out(*apply));
    return task;
  }
  if (role != ThreadRole::kBusyThread && statistics_.has_next()) return statistics_.next();
  return std::nullopt;
}

void Exchange::on_contributed(const Contribute& work, std::size_t payload_bytes) {
  transfers_.on_contributed(work.chunk, work.to, payload_bytes);
}

void Exchange::on_total_sent(std::size_t chunk, const std::vector<Rank>& to, std::size_t payload_bytes) {
  transfers_.on_total_sent(chunk, to, payload_bytes);
}

void Exchange::on_applied(std::size_t chunk) {
  TG_CHECK(layout_ != nullptr, chunk);
  transfers_.on_applied(chunk);
  try_commit();
}

void Exchange::try_commit() {
  if (failed_ || !transfers_.all_applied()) return;
  const std::optional<std::uint32_t> flags = announcements_.flags();
  TG_CHECK(flags.has_value(), local_.round.value());
  actions_.emplace_back(CommitRound{local_.round, *flags, announcements_.loss_sum(), announcements_.statistics()});
  layout_ = nullptr;
  next_round_ = local_.round.next();
}

// --- flags, causes, waiting ---

void Exchange::add_flags(std::uint32_t flags) {
  if (layout_ != nullptr && !step_frame_sent_)
    local_.flags |= flags;
  else
    next_flags_ |= flags;
}

std::optional<std::uint32_t> Exchange::flags() const {
  return layout_ != nullptr ? announcements_.flags() : std::nullopt;
}

void Exchange::fail(std::optional<schema::Fail> cause) {
  if (failed_ || !cause) return;
  failed_ = true;
  actions_.emplace_back(std::in_place_type<FailRun>, *std::move(cause));
}

void Exchange::on_bad_payload(std::size_t chunk, Rank from) {
  fail(members_.cause(from, "reduce",
                      "the payload of chunk " + std::to_string(chunk) + " from " + members_.names[from] +
                          " breaks its format in step " + std::to_string(local_.round.value())));
}

std::vector<ExchangeAction> Exchange::take_actions() { return std::exchange(actions_, {}); }

Waiting Exchange::waiting() const {
  if (layout_ == nullptr || announced_buckets_ < layout_->buckets.size()) return {};
  for (std::size_t bucket = 0; bucket < layout_->buckets.size(); ++bucket) {
    if (announcements_.complete(bucket)) continue;
    Waiting waiting{schema::Phase::kScalerWait, {}};
    for (const Rank r : members_.ranks())
      if (!announcements_.announced(bucket, r)) waiting.ranks.push_back(r);
    return waiting;
  }
  return transfers_.waiting();
}

}  // namespace tg::daemon

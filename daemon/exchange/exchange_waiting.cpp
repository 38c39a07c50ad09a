// Whom an exchange waits for, asked each time a node has nothing else to do: chunks are counted when a step and its
// buckets begin, and as they come and go, instead of looked at each time.
#include <algorithm>

#include "daemon/exchange/exchange.h"

namespace tg::daemon {

// Between two members as many go as come: in the sharded exchange codes one way and their sum the other.
void Exchange::count_frames() {
  to_come_.assign(members(), 0);
  for (const ChunkPlan& chunk : plan_->chunks)
    for (Rank r = 0; r < members(); ++r)
      to_come_[r] += plan_->sharded() ? (chunk.owner == options_.self) + (chunk.owner == r) : 1;
  to_send_ = to_come_;
}

void Exchange::count_owed(std::size_t bucket) {
  const BucketPlan& plan = plan_->buckets[bucket];
  std::size_t summed_here = 0;
  for (std::size_t c = plan.first_chunk; c < plan.last_chunk; ++c) {
    if (!plan_->sharded() || plan_->chunks[c].owner == options_.self)
      ++summed_here;
    else
      ++owed_[plan_->chunks[c].owner].totals;
  }
  for (Rank r = 0; r < members(); ++r)
    if (r != options_.self) owed_[r].contributions += summed_here - buckets_[bucket].early[r];
}

Exchange::Waiting Exchange::waiting() const {
  Waiting waiting;
  if (plan_ == nullptr) return waiting;
  if (!announced_all()) {
    const Bucket& next = buckets_[ready_buckets_];
    if (members() > 1 && next.announced_count == members() - 1) waiting.late.push_back(options_.self);
    return waiting;
  }
  const auto closed = std::find_if(buckets_.begin(), buckets_.end(), [](const Bucket& bucket) { return !bucket.open; });
  if (closed != buckets_.end()) {
    waiting.phase = schema::Phase::kScalerWait;
    for (Rank r = 0; r < members(); ++r) {
      if (closed->announced[r]) continue;
      waiting.ranks.push_back(r);
      // What it owes may be on the way, with the announcement behind it: that is the link's time, not the member's.
      if (owed_[r].contributions + owed_[r].totals == 0) waiting.late.push_back(r);
    }
    return waiting;
  }
  // Who has not given credit back keeps our own chunks from leaving; who has all of them gives none.
  const auto has_any = [](const std::deque<std::size_t>& queue) { return !queue.empty(); };
  const bool held_back = std::any_of(to_contribute_.begin(), to_contribute_.end(), has_any) ||
                         std::any_of(to_reduce_.begin(), to_reduce_.end(), has_any);
  const auto add = [&](schema::Phase phase, auto waited_for) {
    for (Rank r = 0; r < members(); ++r)
      if (r != options_.self && waited_for(r)) waiting.ranks.push_back(r);
    if (!waiting.ranks.empty()) waiting.phase = phase;
  };
  const auto keeps_ours = [&](Rank r) { return held_back && to_send_[r] > 0 && !credit_.lasts(r); };
  // In the direct exchange one full window stops a member's codes to all: what the others owe waits for the same peer.
  if (!plan_->sharded()) add(schema::Phase::kReduce, keeps_ours);
  if (waiting.ranks.empty())
    add(schema::Phase::kReduce, [&](Rank r) { return owed_[r].contributions > 0 || keeps_ours(r); });
  if (waiting.ranks.empty()) add(schema::Phase::kGather, [&](Rank r) { return owed_[r].totals > 0; });
  return waiting;
}

}  // namespace tg::daemon

// Whom an exchange waits for: read from its state, changes nothing.
#include <algorithm>

#include "daemon/exchange/exchange.h"

namespace tg::daemon {

Exchange::Waiting Exchange::waiting() const {
  Waiting waiting;
  if (plan_ == nullptr || !announced_all()) return waiting;
  const auto add = [&](schema::Phase phase, Rank rank) {
    waiting.phase = phase;
    if (std::find(waiting.ranks.begin(), waiting.ranks.end(), rank) == waiting.ranks.end())
      waiting.ranks.push_back(rank);
  };
  for (const Bucket& bucket : buckets_) {
    if (bucket.open) continue;
    for (Rank r = 0; r < members(); ++r)
      if (!bucket.announced[r]) add(schema::Phase::kScalerWait, r);
    return waiting;
  }
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const bool mine = !plan_->sharded() || plan_->chunks[c].owner == options_.self;
    if (!mine || chunks_[c].reducing) continue;
    for (Rank r = 0; r < members(); ++r)
      if (r != options_.self && !chunks_[c].held[r]) add(schema::Phase::kReduce, r);
  }
  // Who has not given credit back keeps our own chunks from leaving.
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (to_contribute_[b].empty() && to_reduce_[b].empty()) continue;
    for (Rank r = 0; r < members(); ++r)
      if (r != options_.self && !credit_.lasts(r)) add(schema::Phase::kReduce, r);
  }
  if (!waiting.ranks.empty()) return waiting;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].total_came || !plan_->sharded() || plan_->chunks[c].owner == options_.self) continue;
    add(schema::Phase::kGather, plan_->chunks[c].owner);
  }
  return waiting;
}

}  // namespace tg::daemon

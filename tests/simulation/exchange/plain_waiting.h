// Whom an exchange waits for, by looking at every chunk and every member: what Exchange::waiting() has to say.
#pragma once

#include <set>

#include "daemon/exchange/exchange.h"

namespace tg::daemon {

struct PlainWaiting {
  schema::Phase phase = schema::Phase::kIdle;
  std::set<Rank> ranks, late;

  explicit PlainWaiting(const Exchange& exchange) : of_(exchange) { look(); }

 private:
  void look() {
    if (of_.plan_ == nullptr) return;
    for (std::size_t b = 0; b < of_.buckets_.size(); ++b) {
      if (of_.buckets_[b].open) continue;
      std::set<Rank> silent;
      for (Rank r = 0; r < of_.members(); ++r)
        if (!of_.buckets_[b].announced[r]) silent.insert(r);
      if (of_.announced_all()) return wait_for_scalers(silent);
      if (b == of_.ready_buckets_) {
        if (of_.members() > 1 && silent == std::set<Rank>{self()}) late = silent;
        return;
      }
    }
    if (!of_.announced_all()) return;
    wait_for_chunks();
  }
  Rank self() const { return of_.options_.self; }
  bool here(std::size_t chunk) const { return !of_.plan_->sharded() || of_.plan_->chunks[chunk].owner == self(); }
  bool owes(Rank rank, std::size_t chunk) const {
    if (here(chunk)) return rank != self() && !of_.chunks_[chunk].reducing && !of_.chunks_[chunk].held[rank];
    return of_.plan_->chunks[chunk].owner == rank && !of_.chunks_[chunk].total_came;
  }
  // Some chunk of ours has not left for it. Work under way counts.
  bool lacks_ours(Rank rank) const {
    for (std::size_t c = 0; c < of_.chunks_.size(); ++c) {
      const Exchange::ChunkState& chunk = of_.chunks_[c];
      if (!of_.plan_->sharded() ? !chunk.contributed
          : here(c)             ? !chunk.applied
                                : of_.plan_->chunks[c].owner == rank && !chunk.contributed)
        return true;
    }
    return false;
  }
  void wait_for_scalers(const std::set<Rank>& silent) {
    phase = schema::Phase::kScalerWait;
    ranks = late = silent;
    for (std::size_t c = 0; c < of_.chunks_.size(); ++c)
      if (of_.buckets_[of_.plan_->chunks[c].bucket].open) std::erase_if(late, [&](Rank rank) { return owes(rank, c); });
  }
  void wait_for_chunks() {
    std::set<Rank> owing;
    for (Rank r = 0; r < of_.members(); ++r) {
      for (std::size_t c = 0; c < of_.chunks_.size(); ++c)
        if (here(c) && owes(r, c)) owing.insert(r);
      for (std::size_t b = 0; b < of_.buckets_.size(); ++b)
        if (r != self() && !of_.credit_.lasts(r) && (!of_.to_contribute_[b].empty() || !of_.to_reduce_[b].empty()) &&
            lacks_ours(r))
          ranks.insert(r);
    }
    if (of_.plan_->sharded() || ranks.empty()) ranks.insert(owing.begin(), owing.end());
    phase = ranks.empty() ? schema::Phase::kIdle : schema::Phase::kReduce;
    if (!ranks.empty()) return;
    for (std::size_t c = 0; c < of_.chunks_.size(); ++c)
      if (!here(c) && !of_.chunks_[c].total_came) ranks.insert(of_.plan_->chunks[c].owner);
    if (!ranks.empty()) phase = schema::Phase::kGather;
  }

  const Exchange& of_;
};

}  // namespace tg::daemon

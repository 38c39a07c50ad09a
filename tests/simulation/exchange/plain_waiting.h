// The members that an exchange waits for, found by looking at every chunk and every member: what Exchange::waiting()
// has to return.
#pragma once

#include <set>

#include "daemon/exchange/exchange.h"

namespace tg::daemon {

struct PlainWaiting {
  schema::Phase phase = schema::Phase::kIdle;
  std::set<Rank> ranks;

  explicit PlainWaiting(const Exchange& exchange)
      : exchange_(exchange), of_(exchange.transfers_), members_(exchange.members_) {
    if (exchange.layout_ != nullptr && exchange.announced_buckets_ == exchange.layout_->buckets.size()) look();
  }

 private:
  void look() {
    for (std::size_t b = 0; b < of_.buckets_.size(); ++b) {
      if (of_.buckets_[b].open) continue;
      phase = schema::Phase::kScalerWait;
      for (const Rank r : members_.ranks())
        if (!exchange_.announcements_.announced(b, r)) ranks.insert(r);
      return;
    }
    wait_for_chunks();
  }
  Rank self() const { return members_.self; }
  bool sharded() const { return of_.layout_->sharded(); }
  bool here(std::size_t chunk) const { return !sharded() || of_.layout_->chunks[chunk].owner == self(); }
  bool owes(Rank rank, std::size_t chunk) const {
    return rank != self() && !of_.chunks_[chunk].reducing && !of_.chunks_[chunk].held[rank];
  }
  // Some chunk of ours is ready for it and may not go there.
  bool holds_up(Rank rank) const {
    const std::uint64_t window = of_.layout_->window_bytes, own = of_.credit_.in_flight(rank);
    std::uint64_t all = 0;
    for (const Rank r : members_.others()) all += of_.credit_.in_flight(r);
    const bool used_up = all >= window * members_.others().size();
    for (const Transfers::Bucket& bucket : of_.buckets_) {
      for (const std::size_t chunk : bucket.to_contribute)
        if ((!sharded() || of_.layout_->chunks[chunk].owner == rank) && own >= window) return true;
      const bool too_many = used_up ? own >= window : own >= schema::kMaxWindowsOfTotals * window;
      if (sharded() && !bucket.to_reduce.empty() && too_many) return true;
    }
    return false;
  }
  void wait_for_chunks() {
    std::set<Rank> owing;
    for (const Rank r : members_.ranks()) {
      for (std::size_t c = 0; c < of_.chunks_.size(); ++c)
        if (here(c) && owes(r, c)) owing.insert(r);
      if (r != self() && holds_up(r)) ranks.insert(r);
    }
    if (sharded() || ranks.empty()) ranks.insert(owing.begin(), owing.end());
    phase = ranks.empty() ? schema::Phase::kIdle : schema::Phase::kReduce;
    if (!ranks.empty()) return;
    for (std::size_t c = 0; c < of_.chunks_.size(); ++c)
      if (!here(c) && !of_.chunks_[c].total_came) ranks.insert(of_.layout_->chunks[c].owner);
    if (!ranks.empty()) phase = schema::Phase::kGather;
  }

  const Exchange& exchange_;
  const Transfers& of_;
  const Members& members_;
};

}  // namespace tg::daemon

// What a newcomer is fed: all that a run's member has of it at a confirmed state, as one sequence of bytes in parts.
//
//   record | views | metrics | parameters | slots | average, if one is kept | running statistics | best model, if kept
//
// record, views and metrics are the giver's run.json, views.jsonl and metrics.jsonl; arrays lie as in the replica
// (Replica::array_sizes), little-endian float32. A slice is of one part. The newcomer asks, the giver answers: so it is
// the newcomer that bounds what is under way, and asks again where a connection broke. Each end is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/step/replica.h"
#include "kernels/base/aligned_array.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// The giver's end. The replica outlives it, and keeps its state.
class SnapshotSource {
 public:
  struct Past {
    std::string record, views;
    std::uint64_t metrics_bytes = 0;
    std::function<Status(std::uint64_t at, std::span<std::byte> to)> read_metrics = {};  // at most a slice
  };
  SnapshotSource(Past past, const Replica& replica);

  const std::vector<std::uint64_t>& parts() const { return parts_; }
  // The newcomer's word, and what it is sent now: slices up to a window after what it has. An error of what is read.
  Status want(const schema::SnapshotRequest& want,
              const std::function<void(std::uint64_t at, std::span<const std::byte>)>& send);

 private:
  Status read(std::size_t part, std::uint64_t at, std::span<std::byte> to) const;

  const Past past_;
  const Replica& replica_;
  std::vector<std::uint64_t> parts_;
  std::uint64_t bytes_ = 0, sent_ = 0;
  AlignedArray<float> slice_;
};

// The newcomer's end.
class SnapshotSink {
 public:
  static constexpr std::uint64_t kAgainMs = 1'000;  // without a slice that it awaits
  using WriteMetrics = std::function<Status(std::span<const std::byte>)>;
  // Errors (kCorrupt): the parts are not those of this replica, which outlives it. metrics come in order.
  static Result<std::unique_ptr<SnapshotSink>> of(const schema::SnapshotOffer& feed, Replica& replica,
                                                  WriteMetrics write_metrics);

  const schema::StateId& state() const { return state_; }
  // Any slice but the one that is awaited is ignored. Once all are there the replica begins at that state.
  Status take(const schema::SnapshotChunk& slice, std::uint64_t now_ms);
  // What to ask for now, if anything.
  std::optional<schema::SnapshotRequest> due(std::uint64_t now_ms);
  bool whole() const { return next_ == bytes_; }
  std::uint64_t done() const { return next_; }
  const std::string& record() const { return record_; }
  const std::string& views() const { return views_; }

 private:
  SnapshotSink(const schema::SnapshotOffer& feed, Replica& replica, WriteMetrics write_metrics);

  const schema::StateId state_;
  const std::vector<std::uint64_t> parts_;
  Replica& replica_;
  const WriteMetrics write_metrics_;
  std::string record_, views_;
  std::uint64_t bytes_ = 0, next_ = 0, begin_ = 0;  // of all; awaited; where its part begins
  std::size_t part_ = 0;                            // that next_ is in
  bool asks_ = true;                                // for more, at once
  std::uint64_t asked_ms_ = 0;
  AlignedArray<float> slice_;
};

}  // namespace tg::daemon

// A snapshot: everything that a member has of a run at a confirmed state, as one sequence of bytes in parts.
//
//   record | views | metrics | parameters | slots | average, if one is kept | running statistics | best model, if kept
//
// record, views and metrics are the donor's run.json, views.jsonl and metrics.jsonl; the arrays are those of the
// replica (Replica::array_sizes), little-endian float32. A chunk never spans two parts. The joiner requests and the
// donor answers: so the joiner bounds the bytes in flight, and repeats a request after a broken connection. One thread
// each.
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

// The donor's end of a snapshot. The replica outlives it, and keeps its state.
class SnapshotSource {
 public:
  struct Past {
    std::string record, views;
    std::uint64_t metrics_bytes = 0;
    std::function<Status(std::uint64_t at, std::span<std::byte> to)> read_metrics = {};  // at most a chunk
  };
  SnapshotSource(Past past, const Replica& replica);

  const std::vector<std::uint64_t>& parts() const { return parts_; }
  // Sends the chunks for the joiner's request, up to a window after what it has. Errors: those of reading.
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

// What an offer may claim: what the job allows, and what the joiner's disk has room for.
struct SnapshotBounds {
  std::uint32_t lineage = 1;  // the run's
  std::uint64_t steps = 0;    // the job's
  std::size_t segments = 0;   // the model's
  std::uint64_t disk_bytes = 0;
};

// The joiner's end of a snapshot.
class SnapshotSink {
 public:
  static constexpr std::uint64_t kAgainMs = 1'000;  // without the awaited chunk
  using WriteMetrics = std::function<Status(std::span<const std::byte>)>;
  // Errors: the offer exceeds the bounds (kRefused: the disk's), or does not fit this replica, which outlives the
  // object. metrics are written in order.
  static Result<std::unique_ptr<SnapshotSink>> of(const schema::SnapshotOffer& feed, const SnapshotBounds& bounds,
                                                  Replica& replica, WriteMetrics write_metrics);

  const schema::StateId& state() const { return state_; }
  // Ignores any chunk but the awaited one. After the last one the replica is at that state.
  Status take(const schema::SnapshotChunk& slice, std::uint64_t now_ms);
  // Returns the request to send now, if any.
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
  std::uint64_t bytes_ = 0, next_ = 0, begin_ = 0;  // total; awaited; begin of its part
  std::size_t part_ = 0;                            // the part of next_
  bool asks_ = true;                                // requests more at once
  std::uint64_t asked_ms_ = 0;
  AlignedArray<float> slice_;
};

}  // namespace tg::daemon

#include "daemon/step/snapshot.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

#include "kernels/base/check.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

enum Part : std::size_t { kRecord, kViews, kMetrics, kArrays };  // the arrays follow

constexpr std::uint64_t kMaxViewsBytes = std::uint64_t{64} << 20;
// A row of metrics.jsonl: numbers of the step, of each member and of each segment, with names.
constexpr std::uint64_t kMaxStepBytes = 2'048, kMaxMemberBytes = schema::kMaxNameBytes + 32, kMaxSegmentBytes = 128;
constexpr std::size_t kSliceFloats = schema::kSnapshotChunkBytes / sizeof(float);

std::uint64_t sum(const std::vector<std::uint64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

void add_arrays(std::vector<std::uint64_t>& parts, const Replica& replica) {
  for (const std::size_t size : replica.array_sizes()) parts.push_back(size * sizeof(float));
}

}  // namespace

// --- the donor ---

SnapshotSource::SnapshotSource(Past past, const Replica& replica)
    : past_(std::move(past)),
      replica_(replica),
      parts_{past_.record.size(), past_.views.size(), past_.metrics_bytes},
      slice_(kSliceFloats) {
  add_arrays(parts_, replica_);
  bytes_ = sum(parts_);
}

Status SnapshotSource::read(std::size_t part, std::uint64_t at, std::span<std::byte> to) const {
  if (part == kMetrics) return past_.read_metrics(at, to);
  if (part < kArrays) {
    std::memcpy(to.data(), (part == kRecord ? past_.record : past_.views).data() + at, to.size());
    return {};
  }
  try {
    replica_.give(part - kArrays, at / sizeof(float), {reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)});
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, std::string("the state cannot be read: ") + error.what()};
  }
  return {};
}

Status SnapshotSource::want(const schema::SnapshotRequest& want,
                            const std::function<void(std::uint64_t at, std::span<const std::byte>)>& send) {
  if (want.from > bytes_ || want.from > sent_) return {};
  if (want.again) sent_ = want.from;
  const std::uint64_t until = std::min(bytes_, want.from + schema::kSnapshotWindowBytes);
  while (sent_ < until) {
    std::size_t part = 0;
    std::uint64_t begin = 0;
    while (sent_ >= begin + parts_[part]) begin += parts_[part++];
    const std::size_t count = std::min<std::uint64_t>(begin + parts_[part] - sent_, schema::kSnapshotChunkBytes);
    const std::span<std::byte> bytes = std::as_writable_bytes(slice_.span()).first(count);
    if (Status read = this->read(part, sent_ - begin, bytes); !read.ok()) return read;
    send(sent_, bytes);
    sent_ += count;
  }
  return {};
}

// --- the joiner ---

SnapshotSink::SnapshotSink(const schema::SnapshotOffer& feed, Replica& replica, WriteMetrics write_metrics)
    : state_(feed.state),
      parts_(feed.parts),
      replica_(replica),
      write_metrics_(std::move(write_metrics)),
      bytes_(sum(parts_)),
      slice_(kSliceFloats) {}

Result<std::unique_ptr<SnapshotSink>> SnapshotSink::of(const schema::SnapshotOffer& feed, const SnapshotBounds& bounds,
                                                       Replica& replica, WriteMetrics write_metrics) {
  std::vector<std::uint64_t> arrays;
  add_arrays(arrays, replica);
  const std::vector<std::uint64_t>& parts = feed.parts;
  const std::uint64_t row_bytes =
      kMaxStepBytes + schema::kMaxMembers * kMaxMemberBytes + bounds.segments * kMaxSegmentBytes;
  const bool fits = feed.state.lineage == bounds.lineage && feed.state.step <= bounds.steps &&
                    parts.size() == kArrays + arrays.size() && parts[kRecord] <= schema::kMaxRecordBytes &&
                    parts[kViews] <= kMaxViewsBytes && parts[kMetrics] / row_bytes <= feed.state.step &&
                    std::equal(arrays.begin(), arrays.end(), parts.begin() + kArrays);
  if (!fits)
    return Error{
        ErrorKind::kCorrupt,
        "the state that is given is not of this run, or larger than its job allows; do all run the same build?"};
  const std::uint64_t text_bytes = parts[kRecord] + parts[kViews] + parts[kMetrics];
  if (text_bytes > bounds.disk_bytes)
    return Error{ErrorKind::kRefused, "the run's record and metrics take " + std::to_string(text_bytes) +
                                          " bytes, and this node's disk has " + std::to_string(bounds.disk_bytes) +
                                          "; make room there, and it joins by itself"};
  return std::unique_ptr<SnapshotSink>(new SnapshotSink(feed, replica, std::move(write_metrics)));
}

Status SnapshotSink::take(const schema::SnapshotChunk& slice, std::uint64_t now_ms) {
  if (slice.at != next_ || whole()) return {};
  while (next_ >= begin_ + parts_[part_]) begin_ += parts_[part_++];
  const std::size_t count = slice.payload.size();
  const std::uint64_t at = next_ - begin_;
  if (count == 0 || count > parts_[part_] - at || count > schema::kSnapshotChunkBytes ||
      (part_ >= kArrays && count % sizeof(float) != 0))
    return Error{ErrorKind::kCorrupt, "a slice that is of no part of the state"};
  if (part_ < kMetrics) {
    (part_ == kRecord ? record_ : views_).append(reinterpret_cast<const char*>(slice.payload.data()), count);
  } else if (part_ == kMetrics) {
    if (Status written = write_metrics_(slice.payload); !written.ok()) return written;
  } else {
    std::memcpy(slice_.span().data(), slice.payload.data(), count);  // aligned
    replica_.take(part_ - kArrays, at / sizeof(float), slice_.span().first(count / sizeof(float)));
  }
  next_ += count;
  asked_ms_ = now_ms;
  asks_ = true;
  if (whole()) replica_.begin_at(Round(state_.step));
  return {};
}

std::optional<schema::SnapshotRequest> SnapshotSink::due(std::uint64_t now_ms) {
  const bool again = now_ms >= asked_ms_ + kAgainMs;
  if (whole() || !(again || asks_)) return std::nullopt;
  asks_ = false;
  asked_ms_ = now_ms;
  return schema::SnapshotRequest{next_, again};
}

}  // namespace tg::daemon

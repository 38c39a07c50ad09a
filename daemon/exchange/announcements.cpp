#include "daemon/exchange/announcements.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "daemon/exchange/compare_digests.h"

namespace tg::daemon {

void Announcements::begin_round(const Layout& layout, Round round, std::uint32_t rate_bits) {
  layout_ = &layout;
  round_ = round;
  rate_bits_ = rate_bits;
  step_frames_.assign(members_.count(), std::nullopt);
  buckets_.assign(layout.buckets.size(), Bucket{Per<Rank, bool>(members_.count()), 0});
  scalers_.begin_round();
}

void Announcements::set_own_clips(std::size_t bucket, const std::vector<float>& bounds) {
  const std::vector<std::size_t>& segments = layout_->buckets[bucket].coded_segments;
  for (std::size_t i = 0; i < segments.size(); ++i) scalers_.set_clip(segments[i], bounds[i]);
}

Announcements::Violation Announcements::on_step_frame(Rank from, const schema::StepFrame& frame) {
  const std::string step = std::to_string(round_.value());
  if (step_frames_[from].has_value())
    return members_.cause(from, "scaler wait", members_.names[from] + " sent two step frames in step " + step);
  if (frame.rate_bits != rate_bits_)
    return members_.cause(from, "scaler wait",
                          "learning rates differ in step " + step + ": " + members_.names[from] + " has " +
                              std::to_string(std::bit_cast<float>(frame.rate_bits)) + ", " + members_.own_name() +
                              " has " + std::to_string(std::bit_cast<float>(rate_bits_)));
  const bool finite = (frame.flags & schema::kNonFinite) == 0;
  if (finite && frame.statistics.size() != batch_statistics_.count())
    return members_.cause(from, "scaler wait",
                          members_.names[from] + " measured " + std::to_string(frame.statistics.size()) +
                              " statistics in step " + step + " where the model has " +
                              std::to_string(batch_statistics_.count()) + "; do all nodes run one job?");
  step_frames_[from] = frame;
  if (flags())
    if (Violation different = compare_digests()) return different;
  return announce(from, 0, frame.flags, frame.non_finite_segment, frame.scalers);
}

Announcements::Violation Announcements::on_scalers(Rank from, const schema::Scalers& frame) {
  if (frame.bucket == 0 || frame.bucket >= buckets_.size())
    return members_.cause(from, "scaler wait",
                          members_.names[from] + " sent scalers of bucket " + std::to_string(frame.bucket) +
                              ", which is not in the layout");
  if (!step_frames_[from])
    return members_.cause(from, "scaler wait",
                          members_.names[from] + " sent scalers of bucket " + std::to_string(frame.bucket) +
                              " before its step frame of step " + std::to_string(round_.value()));
  return announce(from, frame.bucket, frame.flags, frame.non_finite_segment, frame.scalers);
}

Announcements::Violation Announcements::announce(Rank from, std::size_t bucket, std::uint32_t flags,
                                                 std::uint32_t non_finite_segment, const std::vector<float>& scalers) {
  const std::vector<std::size_t>& segments = layout_->buckets[bucket].coded_segments;
  Bucket& state = buckets_[bucket];
  if (flags & schema::kNonFinite) {
    const bool measured = non_finite_segment >= layout_->bucket_of_segment.size();
    return members_.cause(from, "backward",
                          (measured ? "" : "the gradient of ") + members_.segment(non_finite_segment) + " on " +
                              members_.names[from] + " is not finite in step " + std::to_string(round_.value()) +
                              "; lower the learning rate or look at that node's data");
  }
  if (state.by[from] || scalers.size() != segments.size())
    return members_.cause(from, "scaler wait",
                          members_.names[from] + " sent " + std::to_string(scalers.size()) + " scalers of bucket " +
                              std::to_string(bucket) +
                              (state.by[from] ? " twice" : " where the layout has " + std::to_string(segments.size())));
  state.by[from] = true;
  ++state.count;
  for (std::size_t i = 0; i < scalers.size(); ++i) scalers_.announced(from, segments[i], scalers[i]);
  if (complete(bucket))
    for (const std::size_t segment : segments) scalers_.settle(segment);
  return std::nullopt;
}

// Bounded: of the next round, every member can have sent one step frame and one scaler frame per bucket. They are
// checked when that round begins.
Announcements::Violation Announcements::keep_for_next_round(NextRoundFrame frame) {
  const bool is_step_frame = std::holds_alternative<schema::StepFrame>(frame.body);
  if (is_step_frame && std::any_of(next_round_frames_.begin(), next_round_frames_.end(), [&](const NextRoundFrame& e) {
        return e.from == frame.from && std::holds_alternative<schema::StepFrame>(e.body);
      }))
    return members_.cause(
        frame.from, "scaler wait",
        members_.names[frame.from] + " sent two step frames in step " + std::to_string(frame.header.step));
  const auto theirs = std::count_if(next_round_frames_.begin(), next_round_frames_.end(),
                                    [&](const NextRoundFrame& e) { return e.from == frame.from; });
  if (theirs > static_cast<std::ptrdiff_t>(schema::kMaxBuckets))
    return members_.cause(frame.from, "exchange",
                          members_.names[frame.from] + " sends more frames of the next step than it has buckets");
  next_round_frames_.push_back(std::move(frame));
  return std::nullopt;
}

std::vector<Announcements::NextRoundFrame> Announcements::take_next_round_frames() {
  return std::exchange(next_round_frames_, {});
}

std::optional<std::uint32_t> Announcements::flags() const {
  std::uint32_t flags = 0;
  for (const auto& frame : step_frames_) {
    if (!frame) return std::nullopt;
    flags |= frame->flags;
  }
  return flags;
}

double Announcements::loss_sum() const {
  double sum = 0;
  for (const auto& frame : step_frames_) sum += frame->loss_sum;
  return sum;
}

std::vector<float> Announcements::statistics() const {
  Per<Rank, std::span<const float>> measured;
  for (const auto& frame : step_frames_) measured.emplace_back(frame->statistics);
  return batch_statistics_.mean(measured);
}

Announcements::Violation Announcements::compare_digests() const {
  Per<Rank, std::vector<std::uint64_t>> digests;
  for (const auto& frame : step_frames_) digests.push_back(frame->digests);
  return daemon::compare_digests(members_, digests, "before step " + std::to_string(round_.value()));
}

}  // namespace tg::daemon

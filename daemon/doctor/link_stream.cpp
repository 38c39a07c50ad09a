#include "daemon/doctor/link_stream.h"

#include <algorithm>

namespace tg::daemon {

LinkStream::Frames LinkStream::begin(double now_seconds, double seconds) {
  began_ = now_seconds;
  ends_ = now_seconds + seconds;
  return fill(now_seconds);
}

LinkStream::Frames LinkStream::fill(double now_seconds) {
  Frames frames{next_, 0};
  while (now_seconds < ends_ && under_way_.size() < window_) {
    under_way_[next_++] = now_seconds;
    ++frames.count;
  }
  return frames;
}

LinkStream::Frames LinkStream::acknowledged(std::uint32_t number, double now_seconds) {
  const auto sent = under_way_.find(number);
  if (sent == under_way_.end()) return {};
  const double took = now_seconds - sent->second;
  under_way_.erase(sent);
  if (acknowledged_++ == 0) first_at_ = now_seconds;
  last_at_ = now_seconds;
  if (took < kShortSeconds) window_ = std::min(window_ + 1, kMaxFrames);
  if (took > kLongSeconds) window_ = std::max(window_ - 1, kMinFrames);
  return fill(now_seconds);
}

double LinkStream::mbps() const {
  if (acknowledged_ == 0) return 0;
  // A single answer: the time that its frame took.
  const double frames = acknowledged_ == 1 ? 1 : static_cast<double>(acknowledged_ - 1);
  const double seconds = acknowledged_ == 1 ? last_at_ - began_ : last_at_ - first_at_;
  return frames * kFrameBytes * 8e-6 / std::max(seconds, 1e-6);
}

}  // namespace tg::daemon

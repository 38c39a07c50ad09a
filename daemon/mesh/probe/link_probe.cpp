#include "daemon/mesh/probe/link_probe.h"

#include <algorithm>
#include <iterator>

#include "schema/limits.h"

namespace tg::daemon {

LinkProbe::LinkProbe(std::vector<Seat> members, Seat self) : peers_(std::move(members)), done_(peers_.size() < 2) {
  std::ranges::rotate(peers_, std::ranges::lower_bound(peers_, self));
  if (!peers_.empty() && peers_.front() == self) peers_.erase(peers_.begin());
}

std::optional<LinkProbe::Burst> LinkProbe::start(double now_seconds) {
  if (done_ || running_) return std::nullopt;
  return begin(1, now_seconds);
}

LinkProbe::Burst LinkProbe::begin(std::uint32_t number, double now_seconds) {
  running_ = true;
  number_ = number;
  started_ = now_seconds;
  slowest_micros_ = 0;
  missing_ = peers_;
  Burst burst{number, 0, 0, peers_};
  const std::size_t share = kBursts[number - 1].bytes / burst.peers.size();
  burst.frame_bytes = std::clamp(share / kMinFrames, kMinFrameBytes, kMaxFrameBytes);
  burst.frames_per_peer = std::max(kMinFrames, share / burst.frame_bytes);
  timed_bytes_ = (burst.frames_per_peer - 1) * burst.frame_bytes * burst.peers.size();
  return burst;
}

std::optional<LinkProbe::Burst> LinkProbe::on_reply(Seat from, const schema::ProbeReply& reply, double now_seconds) {
  if (done_ || !running_ || reply.burst != number_ || std::erase(missing_, from) == 0) return std::nullopt;
  // A burst cannot have taken longer than the wait for its reply, whatever the reply says. Clocks differ a little.
  const double waited = 1.01e6 * (now_seconds - started_) + 1000;
  slowest_micros_ = std::max(slowest_micros_, std::min(reply.micros, static_cast<std::uint64_t>(waited)));
  if (!missing_.empty()) return std::nullopt;
  const double seconds = 1e-6 * static_cast<double>(std::max<std::uint64_t>(slowest_micros_, 1));
  const double mbps = std::min(measured_mbps(seconds), schema::kMaxLineMbps);
  mbps_ = number_ == std::size(kBursts) ? std::max(mbps_, mbps) : mbps;
  done_ = number_ == std::size(kBursts) || seconds >= kBursts[number_ - 1].enough_seconds;
  if (done_) return std::nullopt;
  return begin(number_ + 1, now_seconds);
}

double LinkProbe::measured_mbps(double seconds) const { return static_cast<double>(timed_bytes_) * 8e-6 / seconds; }

void LinkProbe::tick(double now_seconds) {
  if (done_ || !running_ || now_seconds - started_ <= kTimeoutSeconds) return;
  done_ = true;
  if (number_ == std::size(kBursts)) return;  // the burst before was as large and arrived
  // The link to a peer that has not replied is no faster than this, whatever a smaller burst has shown. If no peer has
  // ever replied, nothing is known.
  const bool answered = missing_.size() < peers_.size();
  const double most = measured_mbps(kTimeoutSeconds);
  if (number_ > 1 || answered) mbps_ = number_ > 1 ? std::min(mbps_, most) : most;
}

}  // namespace tg::daemon

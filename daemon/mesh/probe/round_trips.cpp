#include "daemon/mesh/probe/round_trips.h"

#include "kernels/base/median.h"

namespace tg::daemon {

RoundTrips::Ping RoundTrips::next_ping(double now_seconds) {
  running_ = true;
  sent_ = now_seconds;
  peer_ = Seat((self_.index() + 1 + seconds_.size() % (members_ - 1)) % members_);
  return {peer_, ++number_};
}

std::optional<RoundTrips::Ping> RoundTrips::start(double now_seconds) {
  if (done_ || running_) return std::nullopt;
  began_ = now_seconds;
  return next_ping(now_seconds);
}

std::optional<RoundTrips::Ping> RoundTrips::on_reply(Seat from, std::uint32_t number, double now_seconds) {
  if (done_ || !running_ || from != peer_ || number != number_) return std::nullopt;
  seconds_.push_back(now_seconds - sent_);
  began_ = now_seconds;
  if (seconds_.size() < trips()) return next_ping(now_seconds);
  done_ = true;
  return std::nullopt;
}

std::optional<RoundTrips::Ping> RoundTrips::tick(double now_seconds) {
  if (done_ || !running_ || now_seconds - sent_ <= kRetrySeconds) return std::nullopt;
  if (now_seconds - began_ <= kTimeoutSeconds) return next_ping(now_seconds);
  done_ = true;
  return std::nullopt;
}

double RoundTrips::median_seconds() const { return median(seconds_); }

}  // namespace tg::daemon

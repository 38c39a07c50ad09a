#include "daemon/mesh/probe/round_trips.h"

#include "kernels/base/median.h"

namespace tg::daemon {

RoundTrips::Shot RoundTrips::shoot(double now_seconds) {
  running_ = true;
  sent_ = now_seconds;
  peer_ = Seat((self_.index() + 1 + seconds_.size() % (members_ - 1)) % members_);
  return {peer_, ++number_};
}

std::optional<RoundTrips::Shot> RoundTrips::start(double now_seconds) {
  if (over_ || running_) return std::nullopt;
  began_ = now_seconds;
  return shoot(now_seconds);
}

std::optional<RoundTrips::Shot> RoundTrips::replied(Seat from, std::uint32_t number, double now_seconds) {
  if (over_ || !running_ || from != peer_ || number != number_) return std::nullopt;
  seconds_.push_back(now_seconds - sent_);
  began_ = now_seconds;
  if (seconds_.size() < trips()) return shoot(now_seconds);
  over_ = true;
  return std::nullopt;
}

std::optional<RoundTrips::Shot> RoundTrips::tick(double now_seconds) {
  if (over_ || !running_ || now_seconds - sent_ <= kAgainSeconds) return std::nullopt;
  if (now_seconds - began_ <= kPatienceSeconds) return shoot(now_seconds);
  over_ = true;
  return std::nullopt;
}

double RoundTrips::median_seconds() const { return median(seconds_); }

}  // namespace tg::daemon

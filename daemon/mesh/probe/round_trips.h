// Times small frames to every peer and back, one at a time; a frame without a reply is sent again, since a mesh that
// has just started is not connected yet. Pure: the owner sends and supplies the time; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class RoundTrips {
 public:
  static constexpr std::uint32_t kFirstNumber = 1000;  // above the numbers of LinkProbe's bursts
  static constexpr std::size_t kMinTrips = 20;         // in total; the peers take turns, each at least once
  static constexpr double kRetrySeconds = 0.25;
  static constexpr double kTimeoutSeconds = 2;  // per peer; afterwards it counts as absent

  struct Ping {  // to be sent now
    Seat peer;
    std::uint32_t number = 0;
  };

  // A mesh of one node is done at once.
  RoundTrips(std::size_t members, Seat self) : members_(members), self_(self), done_(members < 2) {}
  std::optional<Ping> start(double now_seconds);
  std::optional<Ping> on_reply(Seat from, std::uint32_t number, double now_seconds);
  std::optional<Ping> tick(double now_seconds);

  bool is_done() const { return done_; }
  bool is_complete() const { return members_ > 1 && seconds_.size() >= trips(); }  // every peer has replied
  double median_seconds() const;                                                   // 0 = not measured

 private:
  std::size_t trips() const { return members_ - 1 > kMinTrips ? members_ - 1 : kMinTrips; }
  Ping next_ping(double now_seconds);

  const std::size_t members_;
  const Seat self_;
  Seat peer_;
  std::uint32_t number_ = kFirstNumber;
  double began_ = 0, sent_ = 0;  // when the current peer was begun, and when the last ping was sent
  bool running_ = false, done_ = false;
  std::vector<double> seconds_;
};

}  // namespace tg::daemon

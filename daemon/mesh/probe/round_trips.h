// Times small frames to every peer and back, one at a time; a frame without an answer is sent again, since a mesh that
// has just started is not connected yet. Pure: the owner sends and brings the time; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class RoundTrips {
 public:
  static constexpr std::uint32_t kFirstNumber = 1000;  // apart from LinkProbe's bursts
  static constexpr std::size_t kMinTrips = 20;         // trips in all; peers in turn, each at least once
  static constexpr double kAgainSeconds = 0.25;        // without an answer
  static constexpr double kPatienceSeconds = 2;        // for one peer; afterwards it counts as absent

  struct Shot {  // to be sent now
    Seat peer;
    std::uint32_t number = 0;
  };

  // A mesh of one has no trips: over at once.
  RoundTrips(std::size_t members, Seat self) : members_(members), self_(self), over_(members < 2) {}
  std::optional<Shot> start(double now_seconds);
  std::optional<Shot> replied(Seat from, std::uint32_t number, double now_seconds);
  std::optional<Shot> tick(double now_seconds);

  bool over() const { return over_; }
  bool complete() const { return members_ > 1 && seconds_.size() >= trips(); }  // every peer answers
  double median_seconds() const;                                                // 0 = not measured

 private:
  std::size_t trips() const { return members_ - 1 > kMinTrips ? members_ - 1 : kMinTrips; }
  Shot shoot(double now_seconds);

  const std::size_t members_;
  const Seat self_;
  Seat peer_;
  std::uint32_t number_ = kFirstNumber;
  double began_ = 0, sent_ = 0;  // with this peer; the last shot
  bool running_ = false, over_ = false;
  std::vector<double> seconds_;
};

}  // namespace tg::daemon

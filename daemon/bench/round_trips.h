// Times small frames to every peer and back, one at a time. Pure: the owner sends and brings the time; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tg::daemon {

class RoundTrips {
 public:
  static constexpr std::uint32_t kFirstNumber = 1000;  // apart from LinkProbe's bursts
  static constexpr std::size_t kTrips = 20;            // in all; peers in turn
  static constexpr double kPatienceSeconds = 1;        // for one

  struct Shot {  // to be sent now
    std::size_t peer = 0;
    std::uint32_t number = 0;
  };

  // A mesh of one has no trips: done at once.
  RoundTrips(std::size_t members, std::size_t self) : members_(members), self_(self), done_(members < 2) {}
  std::optional<Shot> start(double now_seconds);
  std::optional<Shot> replied(std::size_t rank, std::uint32_t number, double now_seconds);
  void tick(double now_seconds);

  bool done() const { return done_; }
  double median_seconds() const;  // 0 = not measured

 private:
  Shot shoot(double now_seconds);

  const std::size_t members_, self_;
  std::size_t peer_ = 0;
  std::uint32_t number_ = kFirstNumber;
  double sent_ = 0;
  bool running_ = false, done_ = false;
  std::vector<double> seconds_;
};

}  // namespace tg::daemon

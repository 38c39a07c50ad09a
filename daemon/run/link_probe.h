// Measures this node's link before a run: a burst of frames to all peers at once, answered by each when it is complete.
// A burst that was over too soon to be told from a start-up effect is followed by a larger one. Pure: the owner sends
// the frames and brings the time; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tg::daemon {

class LinkProbe {
 public:
  static constexpr std::size_t kFrameBytes = 64 * 1024;
  static constexpr std::size_t kFirstBytes = 2u << 20;  // to all peers together
  static constexpr std::size_t kSecondBytes = 16u << 20;
  static constexpr double kShortSeconds = 0.03;  // below it a first burst says little
  static constexpr double kPatienceSeconds = 3;  // a slower link is measured as what came through: nothing

  struct Burst {  // to be sent now, frames in turn to every peer
    std::uint32_t number = 0;
    std::size_t frames_per_peer = 0;
  };

  // A mesh of one has no link: done at once.
  LinkProbe(std::size_t members, std::size_t self);
  std::optional<Burst> start(double now_seconds);
  std::optional<Burst> replied(std::size_t rank, std::uint32_t burst, double now_seconds);
  void tick(double now_seconds);

  bool done() const { return done_; }
  double mbps() const { return mbps_; }  // payload; 0 = not measured

 private:
  Burst begin(std::uint32_t number, std::size_t bytes, double now_seconds);

  const std::size_t members_, self_;
  std::vector<bool> missing_;  // by rank
  std::uint32_t number_ = 0;
  std::size_t bytes_ = 0;
  double started_ = 0;
  bool running_ = false, done_ = false;
  double mbps_ = 0;
};

}  // namespace tg::daemon

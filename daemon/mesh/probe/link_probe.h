// Measures this node's link before a run, by bursts of frames to all other members at once. Each peer reports how long
// its part took to arrive (burst_meter.h); the slowest counts. The first burst is small enough for a link of a megabit
// per second, even if its replies arrive after a burst of the peer's own. A burst too short to be trusted is followed
// by a larger one, whose rate replaces the first. The better rate of the two largest counts: while all members measure
// at once, a new connection gets less than its share.
//
// A burst without all replies within kTimeoutSeconds ends the measurement. If any peer has replied, now or before, the
// link is no faster than that burst in that time; a timeout of the last burst changes nothing. Pure: the owner sends
// the frames (send_burst.h) and supplies the time; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

class LinkProbe {
 public:
  static constexpr std::size_t kMinFrameBytes = 512, kMaxFrameBytes = 64 * 1024;
  static constexpr std::size_t kMinFrames = 4;  // frames to a peer; timing starts after the first
  static constexpr double kTimeoutSeconds = 5;  // per burst
  struct Size {
    std::size_t bytes;      // to all peers together
    double enough_seconds;  // a burst that takes this long ends the measurement
  };
  static constexpr double kNeverSeconds = 1e9;
  // The smallest must take longer than the 0.2 s that a lost packet costs TCP.
  static constexpr Size kBursts[] = {
      {256u << 10, 0.25}, {2u << 20, 0.03}, {16u << 20, kNeverSeconds}, {16u << 20, kNeverSeconds}};

  struct Burst {  // to be sent now, round robin over the peers
    std::uint32_t number = 0;
    std::size_t frames_per_peer = 0, frame_bytes = 0;
    std::vector<Seat> peers;  // in seat order after our own seat, so that not all members begin with the same one
  };

  // members: by seat, this node included. A single member has no link and is done at once.
  LinkProbe(std::vector<Seat> members, Seat self);
  LinkProbe(std::size_t nodes, Seat self) : LinkProbe(seats_of(nodes), self) {}
  std::optional<Burst> start(double now_seconds);
  std::optional<Burst> on_reply(Seat from, const schema::ProbeReply& reply, double now_seconds);
  void tick(double now_seconds);

  bool is_done() const { return done_; }
  double mbps() const { return mbps_; }  // payload; 0 = no reply

 private:
  static std::vector<Seat> seats_of(std::size_t nodes) {
    std::vector<Seat> seats;
    for (std::size_t i = 0; i < nodes; ++i) seats.emplace_back(i);
    return seats;
  }
  Burst begin(std::uint32_t number, double now_seconds);
  double measured_mbps(double seconds) const;

  std::vector<Seat> peers_;    // in seat order after our own seat
  std::vector<Seat> missing_;  // peers that have not replied
  std::uint32_t number_ = 0;   // the current burst, from 1
  std::size_t timed_bytes_ = 0;
  std::uint64_t slowest_micros_ = 0;
  double started_ = 0;
  bool running_ = false, done_ = false;
  double mbps_ = 0;
};

}  // namespace tg::daemon

// The connections that a bound ROUTER has accepted, known from its monitor. It ends those whose cost would have no
// bound. libzmq bounds whole messages only and cannot end one connection; the kernel can: it counts a connection's
// bytes, and shutdown() ends it.
//
//   says nothing     no message for `most_silence` after it was accepted, or after its last one
//   never ends       more bytes since its last whole message than the largest one has, and none waits for us: parts
//                    without end, which no high-water mark counts. libzmq spends about 30 bytes on one that is empty,
//                    so the owner has to look often: tick() every kConnectionTick
//   one too many     more than `most` connections: of those that have said nothing yet, the oldest makes room
//
// Each end is logged; of those that never said anything, and of handshakes that fail, one a minute. One thread, the
// socket's.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "kernels/base/log.h"
#include "kernels/base/log_throttle.h"

namespace tg::daemon {

inline constexpr std::chrono::milliseconds kConnectionTick{50};

struct ConnectionLimits {
  std::size_t most = 0;
  std::chrono::milliseconds most_silence{};
  std::uint64_t most_message_bytes = 0;
};

// Of what libzmq sent on a connection.
struct SentBytes {
  std::uint64_t given = 0;    // to the kernel
  std::uint64_t arrived = 0;  // at the other end
};

class Connections {
 public:
  using Clock = std::chrono::steady_clock;
  // Before the socket is bound. port: "mesh" or "control", for messages. Throws zmq::error_t.
  Connections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits, std::string port, Log& log);
  ~Connections();

  // The descriptor of the connection that a message came on; -1 where it is unknown.
  static int descriptor(zmq::message_t& message);

  void take_events();
  // A whole message came on this connection.
  void spoke(int descriptor);
  // Ends connections over their limits.
  void tick(Clock::time_point now);
  void end(int descriptor, const std::string& why);
  // host:port, "" if unknown.
  std::string address(int descriptor) const;
  // Nothing where there is no such connection. Any thread.
  static std::optional<SentBytes> sent(int descriptor);
  bool open(int descriptor) const { return connections_.contains(descriptor); }
  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    std::string address;
    Clock::time_point spoke;       // time of the last message, or of the accept
    std::uint64_t bytes_then = 0;  // received when it last spoke
    bool stranger = true;          // no message yet
  };
  void accepted(int descriptor);
  void handshake_failed(int error);

  zmq::socket_t& router_;
  zmq::socket_t events_;
  const ConnectionLimits limits_;
  const std::string port_;
  Log& log_;
  std::map<int, Connection> connections_;
  std::string newest_;  // address of the connection accepted last
  LogThrottle cuts_, other_keys_, no_keys_;
};

}  // namespace tg::daemon

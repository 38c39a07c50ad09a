// The connections that a bound ROUTER has accepted, as its monitor tells: whose they are, and an end to those that
// would cost us without bound. libzmq bounds whole messages only and cannot end one connection; the kernel can: it
// counts a connection's bytes, and shutdown() ends it.
//
//   says nothing     no message for `most_silence` after it was accepted, or after its last one
//   never ends       more bytes since its last whole message than the largest one has, and none waits for us: parts
//                    without end, which no high-water mark counts. libzmq spends about 30 bytes on one that is empty,
//                    so the owner has to look often: tick() every kConnectionTick
//   one too many     more than `most` connections: the newest is refused
//
// One thread, the socket's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <zmq.hpp>

namespace tg::daemon {

inline constexpr std::chrono::milliseconds kConnectionTick{50};

struct ConnectionLimits {
  std::size_t most = 0;
  std::chrono::milliseconds most_silence{};
  std::uint64_t most_message_bytes = 0;
};

class Connections {
 public:
  using Clock = std::chrono::steady_clock;
  // cut: told of each connection that was ended, with its address and why.
  using Cut = std::function<void(const std::string& address, const std::string& why)>;
  // Before the socket is bound. Throws zmq::error_t.
  Connections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits, Cut cut);
  ~Connections();

  // The descriptor of the connection that a message came on; -1 where it is unknown.
  static int descriptor(zmq::message_t& message);

  void take_events();
  // A whole message came on this connection.
  void spoke(int descriptor);
  // Ends what is over its limits.
  void tick(Clock::time_point now);
  void end(int descriptor, const std::string& why);
  // host:port, "" where it is unknown.
  std::string address(int descriptor) const;
  bool open(int descriptor) const { return connections_.contains(descriptor); }
  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    std::string address;
    Clock::time_point spoke;
    std::uint64_t bytes_then = 0;  // received when it last spoke
  };
  void accepted(int descriptor);

  zmq::socket_t& router_;
  zmq::socket_t events_;
  const ConnectionLimits limits_;
  const Cut cut_;
  std::map<int, Connection> connections_;
};

}  // namespace tg::daemon

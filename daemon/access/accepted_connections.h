// The connections that a bound ROUTER has accepted, known from its monitor. Closes those whose cost has no other bound:
// libzmq limits whole messages only and cannot close one connection. The kernel counts a connection's bytes, and
// shutdown() closes it.
//
//   silent           no message for `max_silence` since it was accepted, or since its last one
//   endless          more bytes since its last whole message than the largest message has, and no message is waiting:
//                    endless parts, which no high-water mark counts. An empty part costs libzmq about 30 bytes, so
//                    the owner has to call tick() every kConnectionTick
//   one too many     more than `max_connections`: the oldest one without a message makes room
//
// Each cut is logged; cuts of connections without a message, and failed handshakes, once a minute. One thread, the
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
  std::size_t max_connections = 0;
  std::chrono::milliseconds max_silence{};
  std::uint64_t max_message_bytes = 0;
};

// How far the bytes that libzmq has sent on a connection have come.
struct SendProgress {
  std::uint64_t written = 0;       // to the kernel
  std::uint64_t acknowledged = 0;  // by the peer's kernel
};

class AcceptedConnections {
 public:
  using Clock = std::chrono::steady_clock;
  // Made before the socket is bound. port: "mesh" or "control", for messages. Throws zmq::error_t.
  AcceptedConnections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits, std::string port,
                      Log& log);
  ~AcceptedConnections();

  // The descriptor of the connection that carried the message; -1 if unknown.
  static int descriptor(zmq::message_t& message);

  void process_events();
  // A whole message has arrived on this connection.
  void on_message(int descriptor);
  // Closes connections over their limits.
  void tick(Clock::time_point now);
  void close(int descriptor, const std::string& why);
  // host:port, "" if unknown.
  std::string address(int descriptor) const;
  // No value if there is no such connection. Any thread.
  static std::optional<SendProgress> send_progress(int descriptor);
  bool is_open(int descriptor) const { return connections_.contains(descriptor); }
  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    std::string address;
    Clock::time_point heard_at;          // time of the last message, or of the accept
    std::uint64_t bytes_at_message = 0;  // received by then
    bool is_new = true;                  // no message yet
  };
  void on_accepted(int descriptor);
  void on_disconnected(int descriptor);

  zmq::socket_t& router_;
  zmq::socket_t events_;
  const ConnectionLimits limits_;
  const std::string port_;
  Log& log_;
  std::map<int, Connection> connections_;
  int failed_handshake_ = 0;  // the error of a handshake whose connection has not been disconnected yet
  LogThrottle cut_throttle_, other_key_throttle_, no_key_throttle_;
};

}  // namespace tg::daemon

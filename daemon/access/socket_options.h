// The options of all ZeroMQ sockets of a node: bounded in messages, bytes and time, and never waiting for an absent
// peer. The functions work on a socket of the calling thread and throw zmq::error_t, which the caller turns into a
// Status.
//
//   ROUTER_MANDATORY        a send to a peer that has gone is an error
//   IMMEDIATE               a DEALER queues nothing before it is connected
//   LINGER                  the default keeps a process alive forever
//   MAXMSGSIZE              bounds memory: the size field arrives before the payload
//   RECONNECT_IVL(_MAX)     a short back-off: a restarted peer is seen soon
//   CONNECT_TIMEOUT, TCP_MAXRT, HANDSHAKE_IVL   minutes by default
//   BACKLOG                 a burst of unknown connections does not block the others
//   TCP_KEEPALIVE           closes connections whose peer has vanished; Liveness decides which nodes are alive
//
// A connection is given up after give_up_ms in which the peer acknowledged nothing. On the mesh that is no less than
// peer-timeout: a peer that is suspended that long with full buffers, or whose cable is out, may come back.
//
// HEARTBEAT_IVL is not set: in libzmq 4.3.4 its timer writes to a connection that broke while the high-water mark held
// back its input, and an assertion ends the whole process (libzmq#4364, #4767). A peer that dies while this node is
// busy, or a client that floods and leaves, would end this process.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "kernels/base/status.h"
#include "schema/text.h"

namespace tg::daemon {

inline constexpr int kReconnectMs = 100;
inline constexpr int kConnectTimeoutMs = 3000;
inline constexpr int kTcpGiveUpMs = 3000;  // the minimum
inline constexpr int kHandshakeMs = 2000;  // how long an unauthenticated connection may hold memory
inline constexpr int kNextAddressMs =
    kConnectTimeoutMs + kHandshakeMs;  // after which another address of a name is tried
inline constexpr int kBacklog = 1024;  // connections that wait to be accepted; libzmq's default of 100 overflows
// Seconds: probes begin after kKeepAliveIdle of silence and follow at intervals of at least kKeepAliveInterval.
inline constexpr int kKeepAliveIdle = 5, kKeepAliveInterval = 2;

struct SocketOptions {
  int high_water_mark = 64;    // outgoing messages per connection
  int received_messages = 64;  // incoming messages per connection; beyond them TCP holds the peer back
  std::int64_t max_message_bytes = 1024 * 1024;
  int linger_ms = 0;
  int max_reconnect_ms = 1000;
  std::uint64_t give_up_ms = kTcpGiveUpMs;
  bool ipv6 = false;
};

inline void set_socket_options(zmq::socket_t& socket, const SocketOptions& options) {
  socket.set(zmq::sockopt::sndhwm, options.high_water_mark);
  socket.set(zmq::sockopt::rcvhwm, options.received_messages);
  socket.set(zmq::sockopt::maxmsgsize, options.max_message_bytes);
  socket.set(zmq::sockopt::linger, options.linger_ms);
  socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, options.max_reconnect_ms);
  socket.set(zmq::sockopt::connect_timeout, kConnectTimeoutMs);
  const int give_up_ms = static_cast<int>(std::clamp<std::uint64_t>(options.give_up_ms, kTcpGiveUpMs, 24 * 3'600'000));
  socket.set(zmq::sockopt::tcp_maxrt, give_up_ms);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::backlog, kBacklog);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, kKeepAliveIdle);
  // Linux accepts at most 127 probes. With a user timeout it closes a connection by that time, not by their number.
  constexpr int kMaxProbes = 127;
  const int silence = give_up_ms / 1000 - kKeepAliveIdle;
  const int interval = std::max(kKeepAliveInterval, silence / kMaxProbes + 1);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, interval);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, std::clamp(silence / interval + 1, 1, kMaxProbes));
  socket.set(zmq::sockopt::ipv6, options.ipv6);
  if (socket.get(zmq::sockopt::type) == static_cast<int>(zmq::socket_type::router)) {
    socket.set(zmq::sockopt::router_mandatory, true);
  } else {
    socket.set(zmq::sockopt::immediate, true);
  }
}

inline bool is_address_literal(const std::string& host) { return schema::is_ipv4(host) || schema::is_ipv6(host); }

using schema::host_and_port;

// Binds to host:port; an error says which port ("mesh", "control"), where, and what to do.
inline Status bind_socket(zmq::socket_t& socket, std::string_view what, const std::string& host, std::uint16_t port) {
  const std::string place = host_and_port(host, port);
  try {
    socket.bind("tcp://" + place);
    return {};
  } catch (const zmq::error_t& error) {
    const std::string start = "cannot bind the " + std::string(what) + " port " + place + ": ";
    if (error.num() == EADDRINUSE) {
      return Error{ErrorKind::kIo, start + "address in use; another tgd? find it with: ss -ltnp 'sport = :" +
                                       std::to_string(port) + "', or give this node's peer line another port"};
    }
    if (error.num() == EADDRNOTAVAIL || error.num() == ENODEV) {
      return Error{ErrorKind::kIo, start +
                                       "this machine does not have this address; set listen to one that it has "
                                       "(ip -brief address), or to 0.0.0.0 or ::"};
    }
    if (error.num() == EACCES) {
      return Error{ErrorKind::kIo, start + "permission denied; use a port from 1024 on"};
    }
    return Error{ErrorKind::kIo, start + error.what()};
  }
}

}  // namespace tg::daemon

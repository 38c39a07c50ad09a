// How every ZeroMQ socket of a node is set up, in one place: bounded in messages, bytes and time, never waiting for a
// peer that is not there. Functions over a socket of the calling thread; they throw zmq::error_t, which the caller's
// file turns into a Status.
//
//   ROUTER_MANDATORY        a send to someone who left is an error, not silence
//   IMMEDIATE               a DEALER queues nothing for a connection that does not stand
//   LINGER                  the default keeps a process alive for ever
//   MAXMSGSIZE              the size field arrives before the payload: the guard of our memory
//   RECONNECT_IVL(_MAX)     back-off, but short: a restarted peer is seen soon
//   CONNECT_TIMEOUT, TCP_MAXRT, HANDSHAKE_IVL   minutes by default
//   BACKLOG                 a burst of strangers keeps nobody out
//   TCP_KEEPALIVE           tears down connections whose other end has vanished; who is alive is decided by Liveness
//
// A connection is given up after give_up_ms in which the other end took nothing. On the mesh that is no less than
// peer-timeout: a peer that stands still that long, with its buffers full, or whose cable is out, may come back.
//
// No HEARTBEAT_IVL: in libzmq 4.3.4 its timer writes to a connection that broke while its input was held back by the
// high-water mark, and an assertion ends the whole process (libzmq#4364, #4767): a peer that dies while we are busy, or
// a client that floods and leaves, would take us along.
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
inline constexpr int kTcpGiveUpMs = 3000;  // at least
inline constexpr int kHandshakeMs = 2000;  // strangers hold memory so long
inline constexpr int kBacklog = 1024;      // connections that wait to be accepted; libzmq's 100 are overrun at once
// Seconds: probes begin after so long a silence and follow at this distance.
inline constexpr int kKeepAliveIdle = 5, kKeepAliveInterval = 2;

struct SocketOptions {
  int high_water_mark = 64;    // messages per connection, towards the peer
  int received_messages = 64;  // per connection, from it; beyond them TCP holds it back
  std::int64_t most_message_bytes = 1024 * 1024;
  int linger_ms = 0;
  int most_reconnect_ms = 1000;
  std::uint64_t give_up_ms = kTcpGiveUpMs;
  bool ipv6 = false;
  std::uint64_t io_threads = 0;  // bit mask of the context's I/O threads that serve it, 0 = any
};

inline void set_socket_options(zmq::socket_t& socket, const SocketOptions& options) {
  socket.set(zmq::sockopt::sndhwm, options.high_water_mark);
  socket.set(zmq::sockopt::rcvhwm, options.received_messages);
  socket.set(zmq::sockopt::maxmsgsize, options.most_message_bytes);
  socket.set(zmq::sockopt::linger, options.linger_ms);
  socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, options.most_reconnect_ms);
  socket.set(zmq::sockopt::connect_timeout, kConnectTimeoutMs);
  const int give_up_ms = static_cast<int>(std::clamp<std::uint64_t>(options.give_up_ms, kTcpGiveUpMs, 24 * 3'600'000));
  socket.set(zmq::sockopt::tcp_maxrt, give_up_ms);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::backlog, kBacklog);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, kKeepAliveIdle);
  // Linux takes 127 probes at most. With a time to give up it ends a connection by that time, not by their number.
  constexpr int kMaxProbes = 127;
  const int silence = give_up_ms / 1000 - kKeepAliveIdle;
  const int interval = std::max(kKeepAliveInterval, silence / kMaxProbes + 1);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, interval);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, std::clamp(silence / interval + 1, 1, kMaxProbes));
  socket.set(zmq::sockopt::ipv6, options.ipv6);
  if (options.io_threads != 0) socket.set(zmq::sockopt::affinity, options.io_threads);
  if (socket.get(zmq::sockopt::type) == static_cast<int>(zmq::socket_type::router)) {
    socket.set(zmq::sockopt::router_mandatory, true);
  } else {
    socket.set(zmq::sockopt::immediate, true);
  }
}

inline bool is_address_literal(const std::string& host) { return schema::is_ipv4(host) || schema::is_ipv6(host); }

// How to dial a host: a name is looked up as IPv6 (and IPv4 where there is none) if we listen on IPv6 ourselves.
inline bool takes_ipv6(const std::string& host, const std::string& listen) {
  return schema::is_ipv6(is_address_literal(host) ? host : listen);
}

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

#include "daemon/sockets/connections.h"

#include <linux/tcp.h>  // has more of tcp_info than glibc's
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/sockets/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kReadAhead = 64 * 1024;

// No ACCEPT_FAILED: without descriptors libzmq's accept loop spins, and would fill the monitor's queue.
constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;

// host:port of the other end, "" where the descriptor is none of a connection any more.
std::string other_end(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  return (std::strchr(host, ':') != nullptr ? "[" + std::string(host) + "]" : host) + ":" + port;
}

// That libzmq has taken from the kernel.
std::uint64_t taken_bytes(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  int unread = 0;
  // What comes between the two calls makes the answer smaller, never larger.
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || ::ioctl(descriptor, FIONREAD, &unread) != 0)
    return 0;
  return info.tcpi_bytes_received - std::min<std::uint64_t>(info.tcpi_bytes_received, unread > 0 ? unread : 0);
}

}  // namespace

Connections::Connections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits, Cut cut)
    : router_(router), events_(context, zmq::socket_type::pair), limits_(limits), cut_(std::move(cut)) {
  const std::string endpoint = "inproc://accepted-" + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  if (zmq_socket_monitor(router.handle(), endpoint.c_str(), kEvents) != 0) throw zmq::error_t();
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(endpoint);
}

Connections::~Connections() {
  if (router_) zmq_socket_monitor(router_.handle(), nullptr, 0);
}

int Connections::descriptor(zmq::message_t& message) { return zmq_msg_get(message.handle(), ZMQ_SRCFD); }

void Connections::take_events() {
  zmq::message_t event, endpoint;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (!events_.recv(endpoint, zmq::recv_flags::dontwait)) return;
    std::uint16_t what = 0;
    std::int32_t value = 0;
    if (event.size() != sizeof what + sizeof value) continue;
    std::memcpy(&what, event.data(), sizeof what);
    std::memcpy(&value, event.data<char>() + sizeof what, sizeof value);
    if (what == ZMQ_EVENT_ACCEPTED)
      accepted(value);
    else if (what == ZMQ_EVENT_DISCONNECTED)
      connections_.erase(value);
  }
}

void Connections::accepted(int descriptor) {
  connections_[descriptor] = {other_end(descriptor), Clock::now(), 0};
  if (connections_.size() > limits_.most) end(descriptor, "more than " + std::to_string(limits_.most) + " connections");
}

void Connections::spoke(int descriptor) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  found->second.spoke = Clock::now();
  found->second.bytes_then = taken_bytes(descriptor);
}

void Connections::tick(Clock::time_point now) {
  // A message that libzmq is putting together may be as large as one can be, and it reads ahead a little.
  const std::uint64_t most_bytes = limits_.most_message_bytes + kReadAhead;
  std::vector<int> silent, endless;
  for (const auto& [descriptor, connection] : connections_) {
    if (now - connection.spoke >= limits_.most_silence)
      silent.push_back(descriptor);
    else if (taken_bytes(descriptor) > connection.bytes_then + most_bytes)
      endless.push_back(descriptor);
  }
  for (const int descriptor : silent)
    end(descriptor, "no message for " + std::to_string(limits_.most_silence.count() / 1000) + " s");
  // Asked after the bytes were counted: a message that waits for us may be what they were.
  if ((router_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) return;
  for (const int descriptor : endless)
    end(descriptor, "more than " + std::to_string(most_bytes) + " bytes and no end of a message");
  // What libzmq held of their messages goes back to the system only if asked.
  if (!endless.empty()) ::malloc_trim(0);
}

void Connections::end(int descriptor, const std::string& why) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  const std::string address = found->second.address;
  connections_.erase(found);
  // libzmq may have closed it a moment ago, and the number may be another file's: whose it is says its other end.
  if (address.empty() || other_end(descriptor) != address) return;
  ::shutdown(descriptor, SHUT_RDWR);
  cut_(address, why);
}

std::string Connections::address(int descriptor) const {
  const auto found = connections_.find(descriptor);
  return found == connections_.end() ? "" : found->second.address;
}

}  // namespace tg::daemon

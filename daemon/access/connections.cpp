#include "daemon/access/connections.h"

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

#include "daemon/access/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kReadAhead = 64 * 1024;

// No ACCEPT_FAILED: without descriptors libzmq's accept loop spins, and would fill the monitor's queue.
constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

// host:port of the other end, "" if the descriptor no longer belongs to a connection.
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

// The bytes that have come to the kernel on a connection.
std::uint64_t received_bytes(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

// Those of them that libzmq has not taken yet.
std::uint64_t unread_bytes(int descriptor) {
  int unread = 0;
  return ::ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0 ? static_cast<std::uint64_t>(unread) : 0;
}

// The bytes that libzmq has taken from the kernel. This thread may stand still between the two calls, and megabytes may
// come meanwhile: each of the two errs on the peer's side, whatever comes and is taken then.
// Not less than were taken when it was called.
std::uint64_t taken_bytes_at_least(int descriptor) {
  const std::uint64_t unread = unread_bytes(descriptor);
  const std::uint64_t received = received_bytes(descriptor);
  return received - std::min(received, unread);
}

// Not more than are taken when it returns.
std::uint64_t taken_bytes_at_most(int descriptor) {
  const std::uint64_t received = received_bytes(descriptor);
  return received - std::min(received, unread_bytes(descriptor));
}

}  // namespace

Connections::Connections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits, std::string port,
                         Log& log)
    : router_(router), events_(context, zmq::socket_type::pair), limits_(limits), port_(std::move(port)), log_(log) {
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
    else if (what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
      handshake_failed(value);
  }
}

void Connections::accepted(int descriptor) {
  newest_ = other_end(descriptor);
  connections_[descriptor] = {newest_, Clock::now()};
  if (connections_.size() <= limits_.most) return;
  const auto before = [](const auto& a, const auto& b) {
    return std::pair(!a.second.stranger, a.second.spoke) < std::pair(!b.second.stranger, b.second.spoke);
  };
  end(std::min_element(connections_.begin(), connections_.end(), before)->first,
      "more than " + std::to_string(limits_.most) + " connections");
}

// The doorkeeper is not asked in this case. The event names no connection; the one accepted last is the likeliest.
void Connections::handshake_failed(int error) {
  const bool key = error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC;
  if (!key && error != ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return;  // not one of our cases
  if (const std::optional<std::uint64_t> times = (key ? other_keys_ : no_keys_).happened())
    log_.warning("handshake-failed", {{"port", port_},
                                      {"accepted-last", newest_.empty() ? "unknown" : newest_},
                                      {"why", key ? "it has another cluster key" : "only one side has keys"},
                                      {"times", *times}});
}

void Connections::spoke(int descriptor) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  found->second.spoke = Clock::now();
  found->second.bytes_then = taken_bytes_at_least(descriptor);
  found->second.stranger = false;
}

void Connections::tick(Clock::time_point now) {
  // A message that libzmq is putting together may be as large as one can be, and it reads ahead a little.
  const std::uint64_t most_bytes = limits_.most_message_bytes + kReadAhead;
  std::vector<int> silent, endless;
  for (const auto& [descriptor, connection] : connections_) {
    if (now - connection.spoke >= limits_.most_silence)
      silent.push_back(descriptor);
    else if (taken_bytes_at_most(descriptor) > connection.bytes_then + most_bytes)
      endless.push_back(descriptor);
  }
  for (const int descriptor : silent)
    end(descriptor, "no message for " + std::to_string(limits_.most_silence.count() / 1000) + " s");
  // Asked after the bytes were counted: a message that waits for us may be what they were.
  if ((router_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) return;
  for (const int descriptor : endless)
    end(descriptor, "more than " + std::to_string(most_bytes) + " bytes without the end of a message");
  // What libzmq held of their messages goes back to the system only if asked.
  if (!endless.empty()) ::malloc_trim(0);
}

void Connections::end(int descriptor, const std::string& why) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  const std::string address = found->second.address;
  const bool stranger = found->second.stranger;
  connections_.erase(found);
  // libzmq may have just closed it, and the number may now be another file's: the other end's address tells.
  if (address.empty() || other_end(descriptor) != address) return;
  ::shutdown(descriptor, SHUT_RDWR);
  const std::optional<std::uint64_t> times = stranger ? cuts_.happened() : 1;
  if (times) log_.warning("connection-cut", {{"port", port_}, {"from", address}, {"why", why}, {"times", *times}});
}

std::optional<SentBytes> Connections::sent(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return SentBytes{info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes, info.tcpi_bytes_acked};
}

std::string Connections::address(int descriptor) const {
  const auto found = connections_.find(descriptor);
  return found == connections_.end() ? "" : found->second.address;
}

}  // namespace tg::daemon

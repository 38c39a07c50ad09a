#include "daemon/access/accepted_connections.h"

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

// ACCEPT_FAILED is left out: without free descriptors libzmq's accept loop spins and would fill the monitor's queue.
constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

// host:port of the other end, "" if the descriptor no longer belongs to a connection.
std::string remote_address(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  return (std::strchr(host, ':') != nullptr ? "[" + std::string(host) + "]" : host) + ":" + port;
}

// The bytes that the kernel has received on a connection.
std::uint64_t received_bytes(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

// How many of them libzmq has not read yet.
std::uint64_t unread_bytes(int descriptor) {
  int unread = 0;
  return ::ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0 ? static_cast<std::uint64_t>(unread) : 0;
}

// The bytes that libzmq has read from the kernel. This thread may be suspended between the two calls while megabytes
// arrive, so there are two functions, and each errs in the peer's favour. This one returns no less than was read when
// it was called.
std::uint64_t min_consumed_bytes(int descriptor) {
  const std::uint64_t unread = unread_bytes(descriptor);
  const std::uint64_t received = received_bytes(descriptor);
  return received - std::min(received, unread);
}

// Returns no more than has been read when it returns.
std::uint64_t max_consumed_bytes(int descriptor) {
  const std::uint64_t received = received_bytes(descriptor);
  return received - std::min(received, unread_bytes(descriptor));
}

}  // namespace

AcceptedConnections::AcceptedConnections(zmq::context_t& context, zmq::socket_t& router, ConnectionLimits limits,
                                         std::string port, Log& log)
    : router_(router), events_(context, zmq::socket_type::pair), limits_(limits), port_(std::move(port)), log_(log) {
  const std::string endpoint = "inproc://accepted-" + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  if (zmq_socket_monitor(router.handle(), endpoint.c_str(), kEvents) != 0) throw zmq::error_t();
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(endpoint);
}

AcceptedConnections::~AcceptedConnections() {
  if (router_) zmq_socket_monitor(router_.handle(), nullptr, 0);
}

int AcceptedConnections::descriptor(zmq::message_t& message) { return zmq_msg_get(message.handle(), ZMQ_SRCFD); }

void AcceptedConnections::process_events() {
  zmq::message_t event, endpoint;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (!events_.recv(endpoint, zmq::recv_flags::dontwait)) return;
    std::uint16_t what = 0;
    std::int32_t value = 0;
    if (event.size() != sizeof what + sizeof value) continue;
    std::memcpy(&what, event.data(), sizeof what);
    std::memcpy(&value, event.data<char>() + sizeof what, sizeof value);
    if (what == ZMQ_EVENT_ACCEPTED)
      on_accepted(value);
    else if (what == ZMQ_EVENT_DISCONNECTED)
      on_disconnected(value);
    else if (what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
      failed_handshake_ = value;
  }
}

void AcceptedConnections::on_accepted(int descriptor) {
  connections_[descriptor] = {remote_address(descriptor), Clock::now()};
  if (connections_.size() <= limits_.max_connections) return;
  const auto before = [](const auto& a, const auto& b) {
    return std::pair(!a.second.is_new, a.second.heard_at) < std::pair(!b.second.is_new, b.second.heard_at);
  };
  close(std::min_element(connections_.begin(), connections_.end(), before)->first,
        "more than " + std::to_string(limits_.max_connections) + " connections");
}

// The ZAP authenticator is not asked where a handshake fails. That event names no connection, but libzmq's one I/O
// thread ends it next. Its address is unknown where it had ended before its beginning was noticed here.
void AcceptedConnections::on_disconnected(int descriptor) {
  const std::string from = address(descriptor);
  connections_.erase(descriptor);
  const int error = std::exchange(failed_handshake_, 0);
  const bool key = error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC;
  if (!key && error != ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return;  // not one of our cases
  if (const std::optional<std::uint64_t> times = (key ? other_key_throttle_ : no_key_throttle_).happened())
    log_.warning("handshake-failed", {{"port", port_},
                                      {"from", from.empty() ? "unknown" : from},
                                      {"why", key ? "the cluster keys differ" : "only one side has keys"},
                                      {"times", *times}});
}

void AcceptedConnections::on_message(int descriptor) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  found->second.heard_at = Clock::now();
  found->second.bytes_at_message = min_consumed_bytes(descriptor);
  found->second.is_new = false;
}

void AcceptedConnections::tick(Clock::time_point now) {
  // libzmq may be assembling a message of the largest size, and it reads ahead a little.
  const std::uint64_t max_bytes = limits_.max_message_bytes + kReadAhead;
  std::vector<int> silent, endless;
  for (const auto& [descriptor, connection] : connections_) {
    if (now - connection.heard_at >= limits_.max_silence)
      silent.push_back(descriptor);
    else if (max_consumed_bytes(descriptor) > connection.bytes_at_message + max_bytes)
      endless.push_back(descriptor);
  }
  for (const int descriptor : silent)
    close(descriptor, "no message for " + std::to_string(limits_.max_silence.count() / 1000) + " s");
  // Checked after the bytes were counted: they may belong to a message that is waiting for us.
  if ((router_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) return;
  for (const int descriptor : endless)
    close(descriptor, "more than " + std::to_string(max_bytes) + " bytes without the end of a message");
  // The memory of their partial messages returns to the system only on request.
  if (!endless.empty()) ::malloc_trim(0);
}

void AcceptedConnections::close(int descriptor, const std::string& why) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  const std::string address = found->second.address;
  const bool is_new = found->second.is_new;
  connections_.erase(found);
  // libzmq may just have closed it, and the number may belong to another file by now; the peer's address tells.
  if (address.empty() || remote_address(descriptor) != address) return;
  ::shutdown(descriptor, SHUT_RDWR);
  const std::optional<std::uint64_t> times = is_new ? cut_throttle_.happened() : 1;
  if (times) log_.warning("connection-cut", {{"port", port_}, {"from", address}, {"why", why}, {"times", *times}});
}

std::optional<SendProgress> AcceptedConnections::send_progress(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return SendProgress{info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes, info.tcpi_bytes_acked};
}

std::string AcceptedConnections::address(int descriptor) const {
  const auto found = connections_.find(descriptor);
  return found == connections_.end() ? "" : found->second.address;
}

}  // namespace tg::daemon

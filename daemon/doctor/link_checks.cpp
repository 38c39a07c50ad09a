#include "daemon/doctor/link_checks.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "kernels/base/now.h"

namespace tg::daemon {

using schema::LinkFacts;
using schema::Reach;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kMaxAttempt{1200};  // one lost packet is sent again after 1 s
constexpr unsigned char kZmtp = 0xff;                   // the first byte of every ZMTP greeting

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address address_of(const std::string& digits) {
  Address address;
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  if (::getaddrinfo(digits.c_str(), nullptr, &hints, &found) != 0) return address;
  address.bytes = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

// The path of a connection: its packets, and the network device of its own end.
void note_path(int descriptor, LinkFacts& link) {
  Address own;
  own.bytes = sizeof own.storage;
  if (::getsockname(descriptor, own.get(), &own.bytes) != 0) return;
  const bool ipv6 = own.storage.ss_family == AF_INET6;
  int mtu = 0;
  socklen_t bytes = sizeof mtu;
  if (::getsockopt(descriptor, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu, &bytes) == 0)
    link.mtu = static_cast<std::uint32_t>(std::max(mtu, 0));
  const std::string text = address_text(own.get(), own.bytes);
  const auto devices = own_addresses();
  if (text.starts_with("127.") || text == "::1") link.device = "lo";
  if (devices && devices->contains(text)) link.device = devices->at(text);
}

Reach reach_of(int error) {
  if (error == ECONNREFUSED || error == ECONNRESET) return Reach::kRefused;
  return error == ETIMEDOUT ? Reach::kSilent : Reach::kUnreachable;
}

// Sends some full packets and waits until they have arrived: a greeting and the beginning of a command, which libzmq
// waits for the rest of.
bool takes_large_packets(int descriptor, bool has_keys) {
  const Clock::time_point deadline = Clock::now() + kMaxAttempt;
  std::string bytes("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12);
  (bytes += has_keys ? "CURVE" : "NULL").resize(64);
  (bytes += std::string("\6\0\0\0\0\0\1\0\0", 9)).resize(8 * 1024);
  if (::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return true;
  for (int unread = 0; remaining_ms(deadline) > 0;) {
    if (::ioctl(descriptor, SIOCOUTQ, &unread) != 0 || unread == 0) return true;
    pollfd item{descriptor, 0, 0};
    if (::poll(&item, 1, 10) > 0) return true;  // it has closed the connection
  }
  return false;
}

// Connects and reads the first byte.
Reach try_port(int descriptor, Address to, std::uint16_t port, LinkFacts& link) {
  const Clock::time_point deadline = Clock::now() + kMaxAttempt;
  const auto wait_for = [&](short events) {
    pollfd item{descriptor, events, 0};
    return ::poll(&item, 1, remaining_ms(deadline)) > 0;
  };
  (to.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&to.storage)->sin6_port
                                    : reinterpret_cast<sockaddr_in*>(&to.storage)->sin_port) = htons(port);
  if (::connect(descriptor, to.get(), to.bytes) != 0) {
    if (errno != EINPROGRESS) return reach_of(errno);
    if (!wait_for(POLLOUT)) return Reach::kSilent;
    int error = 0;
    socklen_t bytes = sizeof error;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
    if (error != 0) return reach_of(error);
  }
  note_path(descriptor, link);
  unsigned char first = 0;
  if (!wait_for(POLLIN)) return Reach::kStuck;
  if (::recv(descriptor, &first, 1, 0) != 1) return Reach::kRefused;
  return first == kZmtp ? Reach::kOk : Reach::kStranger;
}

void check_link(const schema::NodeConfig& config, std::size_t index, Clock::time_point deadline,
                ExaminationProgress& progress) {
  const schema::PeerAddress& peer = config.peers[Seat(index)];
  LinkFacts link;
  link.peer = peer.name;
  link.line = schema::host_and_port(peer.host, peer.port);
  link.name_problem = "the name server does not answer";
  const auto note = [&] { progress.note([&](schema::Examination& facts) { facts.links[index] = link; }); };
  note();
  const Lookup found = look_up(peer.host);
  link.name_problem = found.error;
  if (!found.addresses.empty()) link.address = found.addresses.front();
  note();
  for (const std::string& digits : found.addresses) {
    LinkFacts tried = link;
    tried.address = digits;
    const Address address = address_of(digits);
    for (const bool mesh : {true, false}) {
      if (Clock::now() >= deadline) return;
      const int descriptor = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (descriptor < 0) return;  // the port stays untried
      const auto port = static_cast<std::uint16_t>(peer.port + (mesh ? 0 : 1));
      (mesh ? tried.mesh : tried.control) = try_port(descriptor, address, port, tried);
      if (mesh && tried.mesh == Reach::kOk && !takes_large_packets(descriptor, !config.key_file.empty()))
        tried.mesh = Reach::kNarrow;
      ::close(descriptor);
    }
    const bool answers = tried.mesh == Reach::kOk || tried.mesh == Reach::kNarrow || tried.control == Reach::kOk;
    if (answers || digits == found.addresses.front()) link = tried;  // else the first one's result stands
    note();
    if (answers) return;
  }
}

}  // namespace

void check_links(const schema::NodeConfig& config, Clock::time_point deadline,
                 const std::shared_ptr<ExaminationProgress>& progress) {
  progress->note([&](schema::Examination& facts) {
    for (const schema::PeerAddress& peer : config.peers) {
      facts.links.emplace_back();
      facts.links.back().peer = peer.name;
      facts.links.back().line = schema::host_and_port(peer.host, peer.port);
    }
  });
  const auto work = [config, deadline, progress, next = std::make_shared<std::atomic<std::size_t>>(0)] {
    for (std::size_t i = 0; (i = (*next)++) < config.peers.size();) {
      try {
        if (Seat(i) != config.seat()) check_link(config, i, deadline, *progress);
      } catch (const std::exception&) {  // no memory left: its ports stay untried
      }
      progress->end_link_check();
    }
  };
  const std::size_t wanted = std::min(config.peers.size(), kMaxLinkThreads);
  for (std::size_t i = 0; i < wanted; ++i) std::thread(work).detach();
}

}  // namespace tg::daemon

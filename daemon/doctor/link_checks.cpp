#include "daemon/doctor/link_checks.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "daemon/access/networks.h"
#include "daemon/access/socket_options.h"
#include "schema/text.h"

namespace tg::daemon {

using schema::LinkFacts;
using schema::Reach;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kMaxLookUp{1200};
constexpr std::chrono::milliseconds kMaxConnect{1500};  // one lost packet is sent again after 1 s
constexpr unsigned char kZmtp = 0xff;                   // the first byte of every ZMTP greeting

struct Resolved {
  sockaddr_storage address{};
  socklen_t bytes = 0;
  std::string text, problem;
};

// As libzmq does.
Resolved resolve(const std::string& host, bool ipv6) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = ipv6 ? AF_INET6 : AF_INET;
  if (ipv6) hints.ai_flags = AI_V4MAPPED;
  Resolved resolved;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0) {
    resolved.problem = ::gai_strerror(failed);
    return resolved;
  }
  resolved.bytes = found->ai_addrlen;
  std::memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
  resolved.text = address_text(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return resolved;
}

// A resolver may take long and cannot be stopped: it is left to itself.
std::shared_future<Resolved> resolve_beside(const std::string& host, bool ipv6, const std::shared_ptr<Report>& alive) {
  auto promise = std::make_shared<std::promise<Resolved>>();
  std::shared_future<Resolved> result = promise->get_future().share();
  std::thread([promise, host, ipv6, alive] { promise->set_value(resolve(host, ipv6)); }).detach();
  return result;
}

struct Attempt {
  std::size_t link = 0;
  bool mesh = true;
  int descriptor = -1;
  bool connected = false;
  Clock::time_point deadline{};
};

class Attempts {
 public:
  Attempts(std::vector<LinkFacts>& links, const std::vector<Resolved>& hosts, const std::vector<std::uint16_t>& ports,
           Clock::time_point deadline)
      : links_(links), hosts_(hosts), ports_(ports), deadline_(deadline) {}

  void make_all() {
    for (std::size_t i = 0; i < links_.size(); ++i)
      for (const bool mesh : {true, false})
        if (hosts_[i].bytes > 0) waiting_.push_back({i, mesh});
    while ((!waiting_.empty() || !open_.empty()) && Clock::now() < deadline_) {
      while (!waiting_.empty() && open_.size() < kMaxAttempts) begin();
      look();
    }
    for (Attempt& late : open_) end(late, late.connected ? Reach::kStuck : Reach::kSilent);
  }

 private:
  Reach& reach(const Attempt& attempt) {
    return attempt.mesh ? links_[attempt.link].mesh : links_[attempt.link].control;
  }
  void end(Attempt& attempt, Reach result) {
    reach(attempt) = result;
    if (attempt.descriptor >= 0) ::close(attempt.descriptor);
    attempt.descriptor = -1;
  }

  void begin() {
    Attempt attempt = waiting_.front();
    waiting_.pop_front();
    const Resolved& host = hosts_[attempt.link];
    sockaddr_storage to = host.address;
    const auto port = htons(static_cast<std::uint16_t>(ports_[attempt.link] + (attempt.mesh ? 0 : 1)));
    (to.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&to)->sin6_port
                              : reinterpret_cast<sockaddr_in*>(&to)->sin_port) = port;
    attempt.descriptor = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt.descriptor < 0) return;  // it stays untried
    attempt.deadline = std::min(deadline_, Clock::now() + kMaxConnect);
    if (::connect(attempt.descriptor, reinterpret_cast<const sockaddr*>(&to), host.bytes) != 0 && errno != EINPROGRESS)
      return end(attempt, errno == ECONNREFUSED ? Reach::kRefused : Reach::kUnreachable);
    open_.push_back(attempt);
  }

  void look() {
    std::vector<pollfd> items;
    for (const Attempt& one : open_)
      items.push_back({one.descriptor, static_cast<short>(one.connected ? POLLIN : POLLOUT), 0});
    if (::poll(items.data(), items.size(), 20) < 0 && errno != EINTR) return;
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (items[i].revents != 0)
        open_[i].connected ? read(open_[i]) : connected(open_[i]);
      else if (now >= open_[i].deadline)
        end(open_[i], open_[i].connected ? Reach::kStuck : Reach::kSilent);
    }
    std::erase_if(open_, [](const Attempt& one) { return one.descriptor < 0; });
  }

  void connected(Attempt& attempt) {
    int error = 0;
    socklen_t bytes = sizeof error;
    if (::getsockopt(attempt.descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
    if (error != 0)
      return end(attempt, error == ECONNREFUSED || error == ECONNRESET ? Reach::kRefused
                          : error == ETIMEDOUT                         ? Reach::kSilent
                                                                       : Reach::kUnreachable);
    attempt.connected = true;
    note_path(attempt.descriptor, links_[attempt.link]);
  }

  void read(Attempt& attempt) {
    unsigned char first = 0;
    const ssize_t got = ::recv(attempt.descriptor, &first, 1, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    end(attempt, got <= 0 ? Reach::kRefused : first == kZmtp ? Reach::kOk : Reach::kStranger);
  }

  static void note_path(int descriptor, LinkFacts& link) {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0) {
      link.round_trip_micros =
          link.round_trip_micros == 0 ? info.tcpi_rtt : std::min(link.round_trip_micros, info.tcpi_rtt);
    }
    sockaddr_storage own{};
    socklen_t own_bytes = sizeof own;
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    if (::getsockname(descriptor, address, &own_bytes) != 0) return;
    link.from = address_text(address, own_bytes);
    int mtu = 0;
    bytes = sizeof mtu;
    const bool ipv6 = own.ss_family == AF_INET6;
    if (::getsockopt(descriptor, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu, &bytes) == 0)
      link.mtu = static_cast<std::uint32_t>(std::max(mtu, 0));
  }

  std::vector<LinkFacts>& links_;
  const std::vector<Resolved>& hosts_;
  const std::vector<std::uint16_t>& ports_;
  const Clock::time_point deadline_;
  std::deque<Attempt> waiting_;
  std::vector<Attempt> open_;
};

void note_devices(std::vector<LinkFacts>& links) {
  const std::map<std::string, std::string> known = own_addresses().value_or(std::map<std::string, std::string>());
  for (LinkFacts& link : links) {
    const auto device = known.find(link.from);
    if (link.from.starts_with("127.") || link.from == "::1") link.device = "lo";
    if (device == known.end()) continue;
    link.device = device->second;
    int speed = 0;  // stays so where it cannot be read, and may be -1: the device does not know
    std::ifstream("/sys/class/net/" + link.device + "/speed") >> speed;
    link.device_mbps = static_cast<std::uint32_t>(std::max(speed, 0));
  }
}

}  // namespace

void check_links(const schema::NodeConfig& config, Clock::time_point deadline, const std::shared_ptr<Report>& report) {
  std::map<std::string, std::shared_future<Resolved>> lookups;
  std::vector<LinkFacts> links;
  std::vector<Resolved> hosts(config.peers.size());
  std::vector<std::uint16_t> ports;
  for (const schema::PeerAddress& peer : config.peers) {
    LinkFacts link;
    link.peer = peer.name;
    link.line = schema::host_and_port(peer.host, peer.port);
    links.push_back(std::move(link));
    ports.push_back(peer.port);
    if (peer.name != config.node && !lookups.contains(peer.host))
      lookups[peer.host] = resolve_beside(peer.host, uses_ipv6(peer.host, config.listen), report);
  }
  const Clock::time_point looked_up = std::min(deadline, Clock::now() + kMaxLookUp);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const schema::PeerAddress& peer = config.peers[Seat(i)];
    if (peer.name == config.node) continue;
    const std::shared_future<Resolved>& found = lookups[peer.host];
    if (found.wait_until(looked_up) == std::future_status::ready)
      hosts[i] = found.get();
    else
      hosts[i].problem = "the name server does not answer";
    links[i].address = hosts[i].text;
    links[i].name_problem = hosts[i].problem;
  }
  Attempts(links, hosts, ports, deadline).make_all();
  note_devices(links);
  report->note([&](schema::Examination& facts) { facts.links = std::move(links); });
  report->links_done();
}

}  // namespace tg::daemon

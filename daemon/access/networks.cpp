#include "daemon/access/networks.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "daemon/access/socket_options.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kResolveAgain{1};
constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void unmap(Network& network) {
  if (!network.ipv6 || network.bits < 96 || std::memcmp(network.bytes, kMapped, sizeof kMapped) != 0) return;
  std::memmove(network.bytes, network.bytes + sizeof kMapped, 4);
  std::fill(network.bytes + 4, std::end(network.bytes), std::uint8_t{0});
  network.ipv6 = false;
  network.bits -= 96;
}

bool is_loopback(const Network& address) {
  static const Network ipv4 = *parse_network("127.0.0.0/8"), ipv6 = *parse_network("::1");
  return ipv4.contains(address) || ipv6.contains(address);
}

}  // namespace

bool Network::contains(const Network& address) const {
  if (ipv6 != address.ipv6 || bits > address.bits) return false;
  const int whole = bits / 8, rest = bits % 8;
  if (std::memcmp(bytes, address.bytes, static_cast<std::size_t>(whole)) != 0) return false;
  return rest == 0 || (bytes[whole] ^ address.bytes[whole]) >> (8 - rest) == 0;
}

std::optional<Network> parse_network(std::string text) {
  Network network;
  const std::size_t slash = text.find('/');
  const std::string prefix = slash == std::string::npos ? "" : text.substr(slash + 1);
  text = text.substr(0, slash);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  text = text.substr(0, text.find('%'));  // the interface of a link-local address
  network.ipv6 = text.find(':') != std::string::npos;
  if (inet_pton(network.ipv6 ? AF_INET6 : AF_INET, text.c_str(), network.bytes) != 1) return std::nullopt;
  const int most = network.ipv6 ? 128 : 32;
  network.bits = most;
  if (slash != std::string::npos) {
    const char* const end = prefix.data() + prefix.size();
    const auto [stop, code] = std::from_chars(prefix.data(), end, network.bits);
    if (code != std::errc() || stop != end || network.bits < 0 || network.bits > most) return std::nullopt;
  }
  unmap(network);
  return network;
}

std::string address_text(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST];
  return ::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::optional<std::map<std::string, std::string>> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  std::map<std::string, std::string> all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    all[address_text(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6))] = one->ifa_name;
  }
  ::freeifaddrs(list);
  return all;
}

bool is_local_address(const std::string& address) {
  const std::optional<Network> wanted = parse_network(address);
  const auto all = own_addresses();
  if (!wanted || !all) return false;
  return is_loopback(*wanted) || std::any_of(all->begin(), all->end(), [&](const auto& one) {
           const std::optional<Network> own = parse_network(one.first);
           return own && own->contains(*wanted);
         });
}

std::string own_address_problem(const std::string& host) {
  if (!is_address_literal(host) || is_local_address(host)) return "";
  return "this node's peer line says " + host +
         ", which is not an address of this machine (ip -brief address): correct it, unless it is forwarded here";
}

std::string no_answer_text(const std::string& place) {
  return "nothing answers at " + place + "; is its tgd running, and is that its address?";
}

Lookup look_up(const std::string& host) {
  if (is_address_literal(host)) return {{host}, ""};
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0)
    return {{}, ::gai_strerror(failed)};
  Lookup all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
    all.addresses.push_back(address_text(one->ai_addr, one->ai_addrlen));
  ::freeaddrinfo(found);
  return all;
}

Networks::Networks(std::vector<std::string> hosts) : Networks(schema::NodeList(), std::move(hosts)) {}

Networks::Networks(schema::NodeList nodes, std::vector<std::string> others)
    : nodes_(std::move(nodes)), others_(std::move(others)) {}

void Networks::read_hosts() {
  if (version_ == nodes_.version()) return;
  version_ = nodes_.version();
  std::vector<std::string> hosts = nodes_.hosts();
  hosts.insert(hosts.end(), others_.begin(), others_.end());
  fixed_.clear();
  names_.clear();
  resolved_.clear();
  next_resolve_ = {};
  for (const std::string& host : hosts) {
    if (const std::optional<Network> network = parse_network(host))
      fixed_.push_back(*network);
    else
      names_.push_back(host);
  }
}

bool Networks::contains(const std::string& address) {
  read_hosts();
  const std::optional<Network> known = parse_network(address);
  if (!known) return false;
  const auto holds = [&](const std::vector<Network>& all) {
    return std::any_of(all.begin(), all.end(), [&](const Network& network) { return network.contains(*known); });
  };
  if (is_loopback(*known) || holds(fixed_) || holds(resolved_)) return true;
  if (names_.empty() || std::chrono::steady_clock::now() < next_resolve_) return false;
  resolve();
  next_resolve_ = std::chrono::steady_clock::now() + kResolveAgain;
  return holds(resolved_);
}

void Networks::resolve() {
  resolved_.clear();
  for (const std::string& name : names_)
    for (const std::string& address : look_up(name).addresses)
      if (const std::optional<Network> network = parse_network(address)) resolved_.push_back(*network);
}

}  // namespace tg::daemon

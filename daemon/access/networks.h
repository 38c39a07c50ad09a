// The addresses that may connect without keys: the hosts of the peer lines, and others from the configuration. Loopback
// is always allowed. Hosts given by name are resolved again when an unknown address connects, at most once a second.
// One thread.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "schema/options/node_list.h"

namespace tg::daemon {

// An IPv4 or IPv6 network: 10.0.0.0/8, fd00::/8, 10.0.0.7. IPv4-mapped addresses (::ffff:10.0.0.7) are IPv4.
struct Network {
  bool ipv6 = false;
  std::uint8_t bytes[16] = {};
  int bits = 0;
  bool contains(const Network& address) const;
};
// No value if the text is not a network.
std::optional<Network> parse_network(std::string text);

// The address in digits; "" if it has none.
std::string address_text(const sockaddr* address, socklen_t bytes);

struct Lookup {
  std::vector<std::string> addresses;  // in digits, in the order in which they should be tried
  std::string error;                   // why there are none: "Name or service not known"
};
// Takes as long as the resolver does. The only address of an address is itself.
Lookup look_up(const std::string& host);

// This machine's addresses, in digits, and the network device of each; no value if they cannot be read.
std::optional<std::map<std::string, std::string>> own_addresses();

// Whether this machine has that address.
bool is_local_address(const std::string& address);

// Why other nodes may not reach this node, whose peer line has that host; "" if there is no reason.
std::string own_address_problem(const std::string& host);

// The message about a peer's port, host:port, that does not answer.
std::string no_answer_text(const std::string& place);

class Networks {
 public:
  // hosts: addresses, networks or names.
  explicit Networks(std::vector<std::string> hosts);
  // Those of the peer lines, as they are now, and others.
  Networks(schema::NodeList nodes, std::vector<std::string> others);
  bool contains(const std::string& address);

 private:
  void read_hosts();
  void resolve();

  schema::NodeList nodes_;
  std::vector<std::string> others_;
  std::optional<std::uint64_t> version_;  // that of nodes_ that was read
  std::vector<Network> fixed_, resolved_;
  std::vector<std::string> names_;
  std::chrono::steady_clock::time_point next_resolve_{};
};

}  // namespace tg::daemon

// Which nodes of a mesh share a host, and with it one link to the others. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

struct HostNodes {
  std::string host;                // as the first of them is addressed
  std::vector<std::string> nodes;  // names, in the order of seats
};

// Nodes whose peer lines have the same host are on one, and so are those on loopback.
std::vector<HostNodes> hosts_of(const Per<Seat, schema::PeerAddress>& peers);
// Of the fullest one.
std::size_t most_nodes(const std::vector<HostNodes>& hosts);
// "node-a and node-b share lab1's link; node-c and node-d share lab2's link"; "" where nobody shares one.
std::string shared_links(const std::vector<HostNodes>& hosts);

// What members send each other on one host does not cross its link; the link carries what all of them send to others.
// In a step in which each member sends everybody else as much, that is, for `here` members on a host,
//   crossings = here * (members - here) / (members - 1)
// times what one member sends. At least 1; and 1 where each has a host of its own, or where there is one host only:
// such a mesh stands for one of as many machines.
double crossings(std::size_t members, std::size_t here);

}  // namespace tg::daemon

#include "daemon/forecast/hosts.h"

#include <algorithm>

namespace tg::daemon {

std::vector<HostNodes> hosts_of(const Per<Seat, schema::PeerAddress>& peers) {
  std::vector<HostNodes> hosts;
  for (const schema::PeerAddress& peer : peers) {
    const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const HostNodes& one) {
      return one.host == peer.host || (schema::is_loopback(one.host) && schema::is_loopback(peer.host));
    });
    if (same == hosts.end())
      hosts.push_back({peer.host, {peer.name}});
    else
      same->nodes.push_back(peer.name);
  }
  return hosts;
}

std::size_t most_nodes(const std::vector<HostNodes>& hosts) {
  std::size_t most = 0;
  for (const HostNodes& one : hosts) most = std::max(most, one.nodes.size());
  return most;
}

std::string shared_links(const std::vector<HostNodes>& hosts) {
  std::string text;
  for (const HostNodes& one : hosts) {
    if (one.nodes.size() < 2) continue;
    text += text.empty() ? "" : "; ";
    for (std::size_t i = 0; i < one.nodes.size(); ++i)
      text += (i == 0 ? "" : i + 1 == one.nodes.size() ? " and " : ", ") + one.nodes[i];
    text += " share " + one.host + "'s link";
  }
  return text;
}

double crossings(std::size_t members, std::size_t here) {
  if (here < 2 || here >= members) return 1;
  return static_cast<double>(here) * static_cast<double>(members - here) / static_cast<double>(members - 1);
}

}  // namespace tg::daemon

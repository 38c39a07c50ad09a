#include "schema/options/node_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "schema/limits.h"
#include "schema/options/option_rows.h"

namespace tg::schema {
namespace {

using Row = Option<NodeConfig>;

constexpr WholeRange kPeerTimeoutRange{500, 3'600'000};
static_assert(kPeerTimeoutRange.least >= 10 * kLivenessTickMs, "the ten beats of a peer-timeout are a tick apart");
constexpr WholeRange kKeepAgeRange{0, std::uint64_t{100} * 365 * 24 * 3'600'000};
constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kMostMemoryMib = std::uint64_t{1} << 30;

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > kMostHostBytes || host.front() == '-') return false;
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

// Four numbers below 256 with dots between.
bool is_ipv4(std::string_view text) {
  int parts = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (parts < 4) {
    unsigned value = 0;
    const auto [stop, code] = std::from_chars(at, end, value);
    if (code != std::errc() || value > 255) return false;
    at = stop;
    if (++parts == 4) break;
    if (at == end || *at++ != '.') return false;
  }
  return at == end;
}

bool is_loopback(std::string_view host) { return host == "localhost" || (is_ipv4(host) && host.starts_with("127.")); }

Row peer_row() {
  Row row;
  row.name = "peer";
  row.help =
      "NAME@host:port of a node, the own one too; once per node, the same lines in every node's file. The port is "
      "the mesh's, the one above it is for control.";
  row.repeated = true;
  row.set = [](NodeConfig& config, const std::string& value) -> Status {
    Result<PeerAddress> peer = parse_peer(value);
    if (!peer) return peer.error();
    config.peers.push_back(*std::move(peer));
    return {};
  };
  row.get = [](const NodeConfig& config) {
    std::string text;
    for (const PeerAddress& peer : config.peers) {
      text += (text.empty() ? "" : ",") + peer.name + "@" + peer.host + ":" + std::to_string(peer.port);
    }
    return text;
  };
  return row;
}

Row fault_row() {
  Row row;
  row.name = "fault";
  row.help = "For tests: kill, hang or flip a bit at PHASE:STEP, such as kill@reduce:20.";
  row.set = [](NodeConfig& config, const std::string& value) -> Status {
    config.fault.reset();
    if (value.empty()) return {};
    const Result<Fault> fault = parse_fault(value);
    if (!fault) return fault.error();
    config.fault = *fault;
    return {};
  };
  row.get = [](const NodeConfig& config) { return config.fault ? format_fault(*config.fault) : std::string(); };
  return row;
}

// The names of the variants that some processor has (kernels/dispatch.cpp).
Row kernels_row() {
  const std::vector<std::string> known{"auto", "avx512", "avx2", "scalar"};
  return word_row<NodeConfig>(
      "kernels", known, "Variant of the kernels; auto = the fastest that passes its self-test.",
      [known](NodeConfig& config, std::size_t index) { config.kernels = known[index]; },
      [known](const NodeConfig& config) {
        return static_cast<std::size_t>(std::find(known.begin(), known.end(), config.kernels) - known.begin());
      });
}

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  rows.push_back(text_row("node", &NodeConfig::node, kMostNameBytes, "Name of this node, one of the peer lines."));
  rows.push_back(peer_row());
  rows.push_back(text_row("listen", &NodeConfig::listen, kMostHostBytes,
                          "Address to bind, without a port: both ports come from the own peer line. Anything but "
                          "loopback needs insecure = true."));
  rows.push_back(
      flag_row("insecure", &NodeConfig::insecure,
               "Listen beyond loopback without keys: anyone who reaches the ports can start and stop runs."));
  rows.push_back(text_row("state-dir", &NodeConfig::state_dir, kMostPathBytes,
                          "Folder for runs: specs, logs, metrics, models. It survives restarts."));
  rows.push_back(text_row("data-dir", &NodeConfig::data_dir, kMostPathBytes,
                          "Folder with data sets on this node, for jobs that name no data-dir."));
  rows.push_back(whole_row("threads", &NodeConfig::threads, {0, kMostThreads},
                           "Threads of the engine, and (up to 8) of the exchange's work; 0 = what the cgroup allows."));
  rows.push_back(whole_row("memory-mib", &NodeConfig::memory_mib, {0, kMostMemoryMib},
                           "MiB that a run may take here, whatever the machine says; a start that needs more is "
                           "refused. 0 = what the machine and its cgroup have left."));
  rows.push_back(whole_row("keep-runs", &NodeConfig::keep_runs, {1, kMostRunsKept},
                           "Ended runs that are kept. Of more, those go first that have no model or whose model was "
                           "fetched, the oldest first; each deletion is logged."));
  rows.push_back(duration_row("keep-age", &NodeConfig::keep_age_ms, kKeepAgeRange,
                              "Runs that ended longer ago go, unless their model was never fetched; 0s = none does."));
  rows.push_back(whole_row("keep-mib", &NodeConfig::keep_mib, {0, kMostMemoryMib},
                           "MiB that all runs may take on the disk; more are deleted as for keep-runs. 0 = any."));
  rows.push_back(duration_row("peer-timeout", &NodeConfig::peer_timeout_ms, kPeerTimeoutRange,
                              "A peer without a sign of life for this long is dead."));
  rows.push_back(kernels_row());
  rows.push_back(choice_row("log-level", &NodeConfig::log_level, "Lowest level that is written to stderr."));
  rows.push_back(fault_row());
  return rows;
}

Status check_peers(const NodeConfig& config) {
  if (config.peers.empty()) {
    return usage("no peer lines: give peer = NAME@host:port once per node, " + config.node + " included");
  }
  if (config.peers.size() > kMostMembers) {
    return usage(std::to_string(config.peers.size()) + " peers are too many; at most " + std::to_string(kMostMembers));
  }
  std::map<std::string, std::string> endpoints;
  std::set<std::string> names;
  for (const PeerAddress& peer : config.peers) {
    if (!names.insert(peer.name).second) return usage("two peer lines are named " + peer.name);
    for (int port = peer.port; port <= peer.port + 1; ++port) {
      const std::string endpoint = peer.host + ":" + std::to_string(port);
      const auto [other, fresh] = endpoints.emplace(endpoint, peer.name);
      if (!fresh) {
        return usage(other->second + " and " + peer.name + " both use " + endpoint +
                     " (a node uses the port of its peer line and the one above it)");
      }
    }
  }
  if (names.contains(config.node)) return {};
  const std::string near = nearest(config.node, {names.begin(), names.end()});
  return usage("node " + config.node + " has no peer line" +
               (near.empty() ? "" : "; did you mean node = " + near + "?") +
               " Every file lists all nodes, its own included");
}

Status check_listen(const NodeConfig& config) {
  if (config.listen.find(':') != std::string::npos) {
    return usage("listen = " + config.listen + ": give an address only; the ports come from the peer line of " +
                 config.node);
  }
  if (!is_ipv4(config.listen) && config.listen != "localhost") {
    return usage("listen = " + config.listen + " is not an IPv4 address such as 127.0.0.1, 10.0.0.1 or 0.0.0.0");
  }
  const bool loopback = is_loopback(config.listen);
  if (!loopback && !config.insecure) {
    return usage("listen = " + config.listen +
                 " is not loopback and there are no keys: anyone who reaches the ports could start and stop runs; set "
                 "insecure = true if the network is trusted");
  }
  const std::string& own = config.self().host;
  for (const PeerAddress& peer : config.peers) {
    if (peer.name == config.node || !is_ipv4(peer.host) || is_loopback(peer.host)) continue;
    const std::string reach = peer.name + " at " + peer.host + " cannot reach " + config.node;
    if (is_loopback(own))
      return usage(reach + ", whose peer line says " + own + ": give the address that the others see");
    if (is_ipv4(own) && loopback) {
      return usage(reach + ", which listens on " + config.listen + " only: set listen = " + own +
                   " and insecure = true");
    }
  }
  return {};
}

}  // namespace

std::string PeerAddress::mesh_endpoint() const { return "tcp://" + host + ":" + std::to_string(port); }

std::string PeerAddress::control_endpoint() const { return "tcp://" + host + ":" + std::to_string(port + 1); }

const PeerAddress& NodeConfig::self() const { return peers[seat()]; }

Seat NodeConfig::seat() const {
  const auto own = std::find_if(peers.begin(), peers.end(), [this](const PeerAddress& p) { return p.name == node; });
  TG_CHECK(own != peers.end(), node);
  return Seat(static_cast<std::size_t>(own - peers.begin()));
}

Per<Seat, std::string> NodeConfig::names() const {
  Per<Seat, std::string> all;
  for (const PeerAddress& peer : peers) all.push_back(peer.name);
  return all;
}

const std::vector<Option<NodeConfig>>& node_options() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

Result<PeerAddress> parse_peer(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::size_t colon = text.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) {
    return bad_value(text, "of the form NAME@host:port, such as node-a@10.0.0.1:7700");
  }
  PeerAddress peer;
  peer.name = text.substr(0, at);
  peer.host = text.substr(at + 1, colon - at - 1);
  if (!is_node_name(peer.name)) {
    return bad_value(peer.name, "a node's name: a-z, 0-9, dots and dashes, a letter or digit first, at most " +
                                    std::to_string(kMostNameBytes));
  }
  if (!is_host(peer.host)) return bad_value(peer.host, "a host name or IPv4 address");
  const std::string_view port = text.substr(colon + 1);
  const auto [stop, code] = std::from_chars(port.data(), port.data() + port.size(), peer.port);
  if (code != std::errc() || stop != port.data() + port.size() || peer.port < 1 || peer.port > 65534) {
    return bad_value(port, "a port from 1 to 65534 (the one above it is the control port)");
  }
  return peer;
}

Status validate_node(const NodeConfig& config) {
  if (config.node.empty()) return usage("node is not set: give node = NAME, one of the peer lines");
  if (!is_node_name(config.node)) {
    return usage("node = " + config.node +
                 ": a name has letters a-z, digits, dots and dashes, begins with a letter or "
                 "digit, and has at most " +
                 std::to_string(kMostNameBytes));
  }
  if (config.state_dir.empty()) return usage("state-dir is empty: runs need a folder");
  if (const Status status = check_peers(config); !status) return status;
  return check_listen(config);
}

std::uint64_t names_hash(const std::vector<PeerAddress>& peers) {
  std::vector<std::string> names;
  for (const PeerAddress& peer : peers) names.push_back(peer.name);
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return hash_text(text);
}

}  // namespace tg::schema

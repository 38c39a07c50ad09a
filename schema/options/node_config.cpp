#include "schema/options/node_config.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "schema/limits.h"
#include "schema/options/option_rows.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

using Row = Option<NodeConfig>;

constexpr WholeRange kPeerTimeoutRange{500, 3'600'000};
static_assert(kPeerTimeoutRange.least >= 10 * kLivenessTickMs, "the ten beats of a peer-timeout are a tick apart");
constexpr WholeRange kKeepAgeRange{0, std::uint64_t{100} * 365 * 24 * 3'600'000};
constexpr std::uint64_t kMaxDevice = 63;
constexpr std::uint64_t kMaxMemoryMib = std::uint64_t{1} << 30;

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > kMaxHostBytes || host.front() == '-') return false;
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || (is_ipv4(host) && host.starts_with("127."));
}

namespace {

bool is_literal(std::string_view host) { return is_ipv4(host) || is_ipv6(host); }

// Parses a mesh port; the control port is the one above it, so 65535 is refused.
Result<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port || *port < 1 || *port > 65534)
    return bad_value(text, "a port from 1 to 65534 (the one above it is the control port)");
  return *port;
}

Row peer_row() {
  const auto set = [](NodeConfig& config, const std::string& value) -> Status {
    Result<PeerAddress> peer = parse_peer(value);
    if (!peer) return peer.error();
    config.peers.push_back(*std::move(peer));
    return {};
  };
  const auto get = [](const NodeConfig& config) {
    return joined(config.peers, ",",
                  [](const PeerAddress& peer) { return peer.name + "@" + host_and_port(peer.host, peer.port); });
  };
  Row row{
      "peer", "NAME@host:port",
      "NAME@host:port of a node: a line per node, this one included. Two nodes connect if each names the other. The "
      "host is a name or an address, an IPv6 address in brackets. The port is the mesh's; the next one up is the "
      "control port. Read again when the file changes.",
      set, get};
  row.repeated = true;
  return row;
}

Row listen_row() {
  const auto set = [](NodeConfig& config, const std::string& value) -> Status {
    config.listen = value;
    config.listen_port = 0;
    const std::size_t colon = value.rfind(':');
    if (colon == std::string::npos || is_ipv6(value) || (value.front() != '[' && !link_local_problem(value).empty()))
      return {};
    config.listen = value.substr(0, colon);
    const Result<std::uint16_t> port = parse_port(std::string_view(value).substr(colon + 1));
    if (!port) return port.error();
    config.listen_port = *port;
    return {};
  };
  const auto get = [](const NodeConfig& config) {
    return config.listen_port == 0 ? config.listen : host_and_port(config.listen, config.listen_port);
  };
  return {
      "listen", "ADDRESS or ADDRESS:PORT",
      "Address to bind, and the mesh port if it is not the peer line's: 0.0.0.0, [::]:7700. The peer line says where "
      "other nodes reach this one. Anything but loopback needs a key-file, or insecure = true.",
      set, get};
}

Row control_allow_row() {
  const auto parse = [](const std::string& value) -> Result<std::vector<std::string>> {
    std::vector<std::string> hosts;
    std::istringstream items(value);
    for (std::string item; std::getline(items, item, ',');) {
      item.erase(0, item.find_first_not_of(' '));
      item.erase(item.find_last_not_of(' ') + 1);
      if (item.empty() || item.size() > kMaxHostBytes || !is_printable(item))
        return bad_value(value, "a list of addresses such as 10.0.0.9,192.168.0.0/16");
      hosts.push_back(item);
    }
    return hosts;
  };
  const auto format = [](const std::vector<std::string>& hosts) { return joined(hosts, ","); };
  return value_row("control-allow", &NodeConfig::control_allow, "list",
                   "Without keys: further addresses, networks (10.0.0.0/8) or names, separated by commas, that may use "
                   "the control port, besides loopback and the hosts of the peer lines.",
                   parse, format);
}

Row metrics_row() {
  const auto set = [](NodeConfig& config, const std::string& value) -> Status {
    config.metrics_host.clear();
    config.metrics_port = 0;
    if (value.empty()) return {};
    const std::size_t colon = std::min(value.rfind(':'), value.size());
    const std::string host = value.substr(0, colon);
    const auto port = parse_number<std::uint16_t>(std::string_view(value).substr(std::min(colon + 1, value.size())));
    if (!port || *port == 0 || !is_literal(host) || (is_ipv6(host) && !host.starts_with('[')))
      return bad_value(value, "an address and a port such as 127.0.0.1:9770, 0.0.0.0:9770 or [::1]:9770");
    config.metrics_host = host;
    config.metrics_port = *port;
    return {};
  };
  const auto get = [](const NodeConfig& config) {
    return config.metrics_host.empty() ? std::string() : host_and_port(config.metrics_host, config.metrics_port);
  };
  return {"metrics", "ADDRESS:PORT",
          "Address and port for Prometheus and health checks over HTTP (/metrics, /healthz, /readyz), such as "
          "127.0.0.1:9770. It has no keys: anyone who reaches the port can read. Not set = off.",
          set, get};
}

Row fault_row() {
  const auto parse = [](const std::string& value) -> Result<std::optional<Fault>> {
    if (value.empty()) return std::optional<Fault>();
    const Result<Fault> fault = parse_fault(value);
    if (!fault) return fault.error();
    return std::optional(*fault);
  };
  return value_row("fault", &NodeConfig::fault, "KIND@PHASE:STEP",
                   "For tests: kill, hang or flip a bit at PHASE:STEP, such as kill@reduce:20.", parse,
                   [](const std::optional<Fault>& fault) { return fault ? format_fault(*fault) : std::string(); });
}

// Knows the variants of all processors, not only of this one (kernels/dispatch.cpp).
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
  rows.push_back(text_row("node", &NodeConfig::node, kMaxNameBytes, "This node's name, as in its peer line."));
  rows.push_back(peer_row());
  rows.push_back(listen_row());
  rows.push_back(path_row("key-file", &NodeConfig::key_file, kMaxPathBytes,
                          "Cluster key file, the same on every node, made by tgctl keygen. Without one of its keys "
                          "nobody can join or control the mesh. It may change while the node runs."));
  rows.push_back(flag_row("insecure", &NodeConfig::insecure,
                          "Allow listening beyond loopback without keys: anyone at an address in the peer lines or in "
                          "control-allow can start and stop runs."));
  rows.push_back(control_allow_row());
  rows.push_back(path_row("state-dir", &NodeConfig::state_dir, kMaxPathBytes,
                          "Folder for runs: jobs, logs, metrics, models. It is kept across restarts."));
  rows.push_back(path_row("data-dir", &NodeConfig::data_dir, kMaxPathBytes,
                          "Folder with data sets on this node, for jobs that set no data-dir."));
  rows.push_back(
      whole_row("threads", &NodeConfig::threads, {0, kMaxThreads},
                "Threads for the engine, and for the exchange (at most 8 of them); 0 = as many as the cgroup allows."));
  rows.push_back(whole_row("weight", &NodeConfig::weight, {1, kMaxWeight},
                           "Weight of this node's share of each batch: a node with weight 3 computes three times as "
                           "many samples as one with weight 1. Only the ratio counts: for 1.5 to 1, use 3 and 2. A job "
                           "with split = speed uses measured speeds instead."));
  rows.push_back(whole_row("memory-mib", &NodeConfig::memory_mib, {0, kMaxMemoryMib},
                           "MiB of memory that a run may use on this node; a run that needs more is refused. 0 = what "
                           "the machine and its cgroup have free."));
  rows.push_back(whole_row("keep-runs", &NodeConfig::keep_runs, {1, kMaxRunsKept},
                           "Number of ended runs to keep. Beyond it, runs without a model or with a fetched model are "
                           "deleted first, the oldest first; each deletion is logged."));
  rows.push_back(
      duration_row("keep-age", &NodeConfig::keep_age_ms, kKeepAgeRange,
                   "Delete runs that ended longer ago than this, unless their model was never fetched; 0s = never."));
  rows.push_back(
      whole_row("keep-mib", &NodeConfig::keep_mib, {0, kMaxMemoryMib},
                "MiB of disk space for all runs; beyond it, runs are deleted as for keep-runs. 0 = no limit."));
  rows.push_back(
      duration_row("peer-timeout", &NodeConfig::peer_timeout_ms, kPeerTimeoutRange,
                   "A peer that has been silent for this long is considered dead, and a run continues without it."));
  rows.push_back(metrics_row());
  rows.push_back(choice_row("engine", &NodeConfig::engine,
                            "What computes: cuda = an NVIDIA GPU (package tgd-cuda; without a GPU tgd does not start); "
                            "cpu = the processor; auto = the GPU if there is one, else the processor, and the log says "
                            "why. Members of a run may differ: their replicas agree bit for bit."));
  rows.push_back(whole_row("device", &NodeConfig::device, {0, kMaxDevice},
                           "Which GPU, as nvidia-smi numbers those that this process may use. A tgd uses one: on a "
                           "host with two GPUs run two nodes, each with its own name, ports, state-dir and device."));
  rows.push_back(
      choice_row("math", &NodeConfig::math,
                 "How a GPU multiplies: fp32 = in full float32; tf32 and bf16 = inputs rounded to 10 and 7 bits of "
                 "mantissa (with bf16 a convolution's outputs as well) and float32 sums, which is faster and less "
                 "exact. Parameters, gradients and updates are float32 in each; the processor always uses fp32."));
  rows.push_back(kernels_row());
  rows.push_back(choice_row("log-level", &NodeConfig::log_level, "Lowest level that is logged to stderr."));
  rows.push_back(choice_row("log-format", &NodeConfig::log_format,
                            "Format of log lines, on stderr and in each run's log: text = key=value, json = an object "
                            "with time, level, node, event and more."));
  rows.push_back(fault_row());
  return rows;
}

Status check_peers(const NodeConfig& config) {
  if (config.peers.empty()) {
    return usage("no peer lines: give peer = NAME@host:port once per node, " + config.node + " included");
  }
  if (config.peers.size() > kMaxMembers) {
    return usage(std::to_string(config.peers.size()) + " peers are too many; at most " + std::to_string(kMaxMembers));
  }
  std::map<std::string, std::string> endpoints;
  std::set<std::string> names;
  for (const PeerAddress& peer : config.peers) {
    if (!names.insert(peer.name).second) return usage("two peer lines are named " + peer.name);
    for (int port = peer.port; port <= peer.port + 1; ++port) {
      const std::string endpoint = host_and_port(peer.host, static_cast<std::uint16_t>(port));
      const auto [other, fresh] = endpoints.emplace(endpoint, peer.name);
      if (!fresh) {
        return usage(other->second + " and " + peer.name + " both use " + endpoint +
                     " (a node uses the port of its peer line and the one above it); give one of them another port");
      }
    }
  }
  if (names.contains(config.node)) return {};
  const std::string near = nearest(config.node, {names.begin(), names.end()});
  return usage("node " + config.node + " has no peer line" +
               (near.empty() ? "" : "; did you mean node = " + near + "?") +
               " Every file lists all nodes, its own included");
}

// Refuses a peer line of this node that is unreachable because the socket has the other IP version. :: takes both.
Status check_family(const NodeConfig& config) {
  const std::string& own = config.self().host;
  const bool any = config.listen == "::" || config.listen == "[::]";
  if (any || !is_literal(own) || is_ipv6(own) == is_ipv6(config.listen)) return {};
  return usage("the peer line of " + config.node + " says " + own + ", but it listens on " + config.listen +
               ", which is an IPv" + (is_ipv6(config.listen) ? "6" : "4") + " address: set listen = " + own + " or ::");
}

Status check_metrics(const NodeConfig& config) {
  if (config.metrics_host.empty()) return {};
  if (config.metrics_port != config.mesh_port() && config.metrics_port != config.control_port()) return {};
  return usage("metrics = " + host_and_port(config.metrics_host, config.metrics_port) + ": port " +
               std::to_string(config.metrics_port) + " is this node's " +
               (config.metrics_port == config.mesh_port() ? "mesh" : "control") + " port; take another one");
}

Status check_listen(const NodeConfig& config) {
  if (const std::string problem = link_local_problem(config.listen); !problem.empty())
    return usage("listen = " + problem);
  if (!is_literal(config.listen) && config.listen != "localhost") {
    return usage("listen = " + config.listen +
                 " is not an address such as 127.0.0.1, 10.0.0.1, 0.0.0.0 (any IPv4) or :: (any IPv4 and IPv6)");
  }
  if (const Status status = check_family(config); !status) return status;
  const bool loopback = is_loopback(config.listen);
  if (!loopback && config.key_file.empty() && !config.insecure) {
    return usage("listen = " + config.listen +
                 " is not loopback and there are no keys: make a cluster key file once (tgctl keygen), copy it to "
                 "every node and set key-file; or set insecure = true if the network is trusted");
  }
  if (config.insecure && !config.key_file.empty())
    return usage("insecure = true and a key-file contradict each other; remove one of the two lines");
  const std::string& own = config.self().host;
  for (const PeerAddress& peer : config.peers) {
    if (peer.name == config.node || !is_literal(peer.host) || is_loopback(peer.host)) continue;
    const std::string reach = peer.name + " at " + peer.host + " cannot reach " + config.node;
    if (is_loopback(own))
      return usage(reach + ", whose peer line says " + own + ": give the address that the others see");
    if (is_literal(own) && loopback) {
      return usage(reach + ", which listens on " + config.listen + " only: set listen = " + own + " and a key-file");
    }
  }
  return {};
}

}  // namespace

const PeerAddress& NodeConfig::self() const { return peers[seat()]; }

Seat NodeConfig::seat() const {
  const auto own = std::find_if(peers.begin(), peers.end(), [this](const PeerAddress& p) { return p.name == node; });
  TG_CHECK(own != peers.end(), node);
  return Seat(static_cast<std::size_t>(own - peers.begin()));
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
                                    std::to_string(kMaxNameBytes));
  }
  if (std::string problem = link_local_problem(peer.host); !problem.empty()) return usage(std::move(problem));
  if (peer.host.starts_with('[') && is_ipv6(peer.host)) {
    peer.host = peer.host.substr(1, peer.host.size() - 2);
  } else if (!is_host(peer.host)) {
    return bad_value(peer.host, "a host name, an IPv4 address, or an IPv6 address in brackets such as [fd00::1]");
  }
  const Result<std::uint16_t> port = parse_port(text.substr(colon + 1));
  if (!port) return port.error();
  peer.port = *port;
  return peer;
}

Status validate_node(const NodeConfig& config) {
  if (config.node.empty()) return usage("node is not set: give node = NAME, one of the peer lines");
  if (!is_node_name(config.node)) {
    return usage("node = " + config.node +
                 ": a name has letters a-z, digits, dots and dashes, begins with a letter or "
                 "digit, and has at most " +
                 std::to_string(kMaxNameBytes));
  }
  if (config.state_dir.empty()) return usage("state-dir is empty: runs need a folder");
  if (const Status status = check_peers(config); !status) return status;
  if (const Status status = check_metrics(config); !status) return status;
  return check_listen(config);
}

}  // namespace tg::schema

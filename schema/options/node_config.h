// A node's configuration: `tgd --config tgd.conf`, TGD_* variables, flags. The order is defaults < file < environment <
// flags. `peer = NAME@host:port`, one line per node, this one included; Seat = order of names.
// A node uses two ports: the mesh port of its peer line and the one above it for control and liveness.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/choices.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/limits.h"
#include "schema/options/fault.h"
#include "schema/options/node_list.h"
#include "schema/options/options.h"
#include "schema/place.h"

namespace tg::schema {

struct NodeConfig {
  std::string node;
  Per<Seat, PeerAddress> peers;  // sorted by name; this node included
  NodeList nodes;                // as the lines are now; shared by all copies of the configuration
  // Where to bind. The others may reach this node at another address, that of its peer line.
  std::string listen = "127.0.0.1";
  std::uint16_t listen_port = 0;           // the mesh port; 0 = that of the peer line
  std::string key_file;                    // the cluster key file; "" = no keys
  bool insecure = false;                   // needed to bind anything but loopback without keys
  std::vector<std::string> control_allow;  // without keys: further addresses, networks and names that may ask
  std::string state_dir = "tgd-state";
  std::string data_dir;
  std::uint64_t weight = 1;                // weight of this node's share of a batch
  std::uint64_t threads = 0;               // engine threads; 0 = what the cgroup allows
  std::uint64_t memory_mib = 0;            // memory for a run; 0 = what the machine or the cgroup has left
  std::uint64_t keep_runs = kMaxRunsKept;  // ended runs kept on disk; older ones are deleted
  std::uint64_t keep_age_ms = 0;           // age at which runs are deleted; 0 = never
  std::uint64_t keep_mib = 0;              // disk space for all runs; 0 = no limit
  std::uint64_t peer_timeout_ms = 10'000;
  std::string metrics_host;  // an address; "" = no metrics port
  std::uint16_t metrics_port = 0;
  EngineKind engine = EngineKind::kAuto;
  std::uint64_t device = 0;      // number of the GPU; for engine cuda only
  Math math = Math::kFp32;       // for engine cuda only
  std::string kernels = "auto";  // auto | avx512 | avx2 | scalar
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  std::optional<Fault> fault;  // for tests

  const PeerAddress& self() const;
  std::uint16_t mesh_port() const { return listen_port != 0 ? listen_port : self().port; }
  std::uint16_t control_port() const { return static_cast<std::uint16_t>(mesh_port() + 1); }
  Seat seat() const;
};

const std::vector<Option<NodeConfig>>& node_options();

// Refuses every mistake that one node can see by itself, with the next action.
Status validate_node(const NodeConfig& config);

// A command line option of tgd that is not a configuration key.
struct ProgramOption {
  const char* name;
  const char* letter;    // "" if there is none
  const char* argument;  // "" for a switch
  const char* help;
};
const std::vector<ProgramOption>& program_options();

struct CommandLine {
  NodeConfig config;
  std::string path;  // the configuration file; "" = none was given
  bool help = false, version = false, check_config = false;
  std::vector<std::string> warnings;  // problems that will matter once the thing is needed
  std::string help_text;
};
// In node_command_line.cpp. Reads the process's environment and the --config file, and validates the result as
// validate_node does.
Result<CommandLine> parse_node_command_line(int argc, const char* const* argv);
Result<PeerAddress> parse_peer(std::string_view text);  // "node-a@10.0.0.1:7700"
bool is_loopback(std::string_view host);                // a loopback address, or localhost

}  // namespace tg::schema

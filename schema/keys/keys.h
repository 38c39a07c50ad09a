// The keys of a mesh: Curve25519 pairs as ZeroMQ's CURVE takes them.
//
// The cluster key, a secret of 32 bytes, is the same on every node. From it follow
//   node_keys(cluster, "node-a")   the pair of that node, for its mesh port and for all its connections
//   control_keys(cluster)          the pair of every control port, so that an operator needs one public key for all
//   member_keys(cluster)           the pair of a tgctl that has the cluster key itself: full rights
// so a public key identifies its owner. Operators have pairs of their own; a cluster key file lists their public keys.
//
// Rotation: a file may hold two cluster keys. The first is in use, both are accepted.
//
// Pure except for random draws (from the system, not from a seed: they are secrets) and read_key_file. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/words.h"

namespace tg::schema {

inline constexpr std::size_t kKeyBytes = 32;
using Key = std::array<std::uint8_t, kKeyBytes>;

struct KeyPair {
  Key public_key{};
  Key secret{};
};

// kRead permits status, logs and fetch.
enum class Rights : std::uint8_t { kRead, kFull };
constexpr auto words_of(Rights) { return words("read", "full"); }

struct Operator {
  std::string name;  // has the form of a node's name
  Rights rights = Rights::kRead;
  Key public_key{};
  bool operator==(const Operator&) const = default;
};

// The contents of a node's key file.
//   cluster = HEX                once or twice
//   operator = NAME RIGHTS HEX   once per operator
struct ClusterKeys {
  std::vector<Key> clusters;
  std::vector<Operator> operators;
};

// The contents of the key file that an operator's tgctl uses.
//   operator = NAME
//   secret = HEX
//   control = HEX   public key of the control ports, once per cluster key
struct OperatorKeys {
  std::string name;
  // One for each cluster key: the client's pair, and the control ports' public key.
  struct Credentials {
    KeyPair own;
    Key control{};
  };
  std::vector<Credentials> credentials;
};

// Parses a node's key file. Errors name `file` and the line.
Result<ClusterKeys> parse_cluster_keys(std::string_view text, std::string_view file);
// Accepts an operator's file or a cluster key file.
Result<OperatorKeys> parse_operator_keys(std::string_view text, std::string_view file);
// Reads a key file. Refuses it if users other than its owner may read it, or if it belongs neither to root nor to this
// process's user.
Result<std::string> read_key_file(const std::string& path);

// A key's text form is 64 hex digits.
std::string format_key(const Key& key);
std::optional<Key> parse_key(std::string_view text);
std::string format_cluster(const Key& cluster);
std::string format_operator(const Operator& listed);  // a line of a cluster key file
std::string format_operator_keys(const std::string& name, const KeyPair& own, const std::vector<Key>& clusters);

Key draw_cluster_key();
KeyPair draw_pair();
KeyPair node_keys(const Key& cluster, std::string_view node);
KeyPair control_keys(const Key& cluster);
KeyPair member_keys(const Key& cluster);

// The first 8 digits of a public key, which tell two apart in a log.
std::string short_key(const Key& open);

}  // namespace tg::schema

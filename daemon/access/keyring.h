// The keys of this node, read from its cluster key file, and the owners of other keys. The file may change while the
// node runs (a rotation, a new operator): refresh() reads it again. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/access/file_stamp.h"
#include "daemon/access/user.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/keys/keys.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

class Keyring {
 public:
  static constexpr const char* kAnonymous = "anonymous";  // the identity of all users without keys
  static constexpr const char* kKeyRevoked = "its key is no longer in the cluster key file";
  // Without `key-file` in the configuration the keyring is empty: has_keys() is false and stays so. An error names the
  // file.
  static Result<std::unique_ptr<Keyring>> open(const schema::NodeConfig& config);

  bool has_keys() const { return !path_.empty(); }
  // The user of a connection, with its current rights: a node of the peer lines, an operator, or a holder of the
  // cluster key. No value if the key is no longer in the file. identity: the User-Id of its messages, from
  // identity_of().
  std::optional<User> find_user(const std::string& identity) const;
  static std::string identity_of(const schema::Key& public_key) { return schema::format_key(public_key); }
  // The key's first bytes: enough to tell two keys apart.
  static std::uint64_t fingerprint(const schema::Key& public_key);

  // The functions below require keys. `which` counts from 0, the cluster key in use, modulo their number: a dialler
  // tries one after the other.
  std::size_t cluster_count() const;
  schema::KeyPair own_keys(std::size_t which) const;
  schema::KeyPair control_keys() const;  // for this node's control port
  schema::Key node_key(std::size_t which, const std::string& name) const;
  // This node's key pair and the port's public key, read together: the file may change between two calls.
  struct ConnectionKeys {
    schema::KeyPair own;
    schema::Key port;
  };
  ConnectionKeys to_node(std::size_t which, const std::string& name) const;
  ConnectionKeys to_control(std::size_t which) const;

  // Reads the file again if it has changed. A file that cannot be used is logged, and the keys stay as they are.
  void refresh(Log& log);

 private:
  struct Keys {
    schema::ClusterKeys file;
    std::map<schema::Key, User> users;
  };
  explicit Keyring(const schema::NodeConfig& config);
  Result<Keys> read_file() const;
  const schema::Key& cluster(std::size_t which) const;  // called with the lock held

  const std::string path_, node_;
  const schema::NodeList nodes_;
  mutable std::mutex mutex_;
  Keys keys_;
  FileStamp stamp_;
  std::uint64_t nodes_version_ = 0;  // that of the nodes whose keys are known
};

}  // namespace tg::daemon

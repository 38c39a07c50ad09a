// The keys of this node, from its cluster key file, and the owners of other keys. The file may change while the node
// runs (a rotation, a new operator): refresh() reads it again. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/access/user.h"
#include "kernels/base/log.h"
#include "kernels/base/status.h"
#include "schema/keys/keys.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

class Keyring {
 public:
  static constexpr const char* kAnybody = "anybody";  // the identity of everyone where there are no keys
  static constexpr const char* kKeyGone = "its key is no longer in the cluster key file";
  // Without `key-file` in the configuration it holds no key: has_keys() is false and stays so. An error names the
  // file.
  static Result<std::unique_ptr<Keyring>> open(const schema::NodeConfig& config);

  bool has_keys() const { return !path_.empty(); }
  // Whose connection it is, with the rights of now: its public key is a node's of the peer lines, an operator's or the
  // cluster's. Nothing if the file has that key no longer. identity: User-Id of its messages, from identity_of().
  std::optional<User> user(const std::string& identity) const;
  static std::string identity_of(const schema::Key& open) { return schema::format_key(open); }
  // Its first bytes: enough to tell two apart.
  static std::uint64_t mark(const schema::Key& open);

  // The functions below need keys. `which` counts from 0, the cluster key in use, modulo their number: who dials tries
  // one after the other.
  std::size_t clusters() const;
  schema::KeyPair own(std::size_t which) const;
  schema::KeyPair control() const;  // of this node's control port
  schema::Key node(std::size_t which, const std::string& name) const;
  // For a dial: the own pair, and the key of the port there. The file may change between two calls.
  struct Ends {
    schema::KeyPair own;
    schema::Key port;
  };
  Ends to_node(std::size_t which, const std::string& name) const;
  Ends to_control(std::size_t which) const;

  // Reads the file again if it has changed. An unusable file is logged and leaves the keys as they are.
  void refresh(Log& log);

 private:
  struct Keys {
    schema::ClusterKeys file;
    std::map<schema::Key, User> users;
  };
  struct Stamp {  // of the file: whether it is another one
    std::int64_t seconds = 0, nanoseconds = 0;
    std::uint64_t inode = 0, size = 0;
    bool operator==(const Stamp&) const = default;
  };
  explicit Keyring(const schema::NodeConfig& config);
  Stamp stamp() const;
  Result<Keys> read() const;
  const schema::Key& cluster(std::size_t which) const;  // lock held

  const std::string path_, node_;
  const Per<Seat, std::string> names_;
  mutable std::mutex mutex_;
  Keys keys_;
  Stamp read_;
};

}  // namespace tg::daemon

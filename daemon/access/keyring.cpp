#include "daemon/access/keyring.h"

#include <cstring>
#include <utility>

namespace tg::daemon {

using schema::Key;
using schema::KeyPair;

Keyring::Keyring(const schema::NodeConfig& config) : path_(config.key_file), node_(config.node), nodes_(config.nodes) {}

Result<std::unique_ptr<Keyring>> Keyring::open(const schema::NodeConfig& config) {
  std::unique_ptr<Keyring> keyring(new Keyring(config));
  if (!keyring->has_keys()) return keyring;
  keyring->stamp_ = file_stamp(keyring->path_);
  keyring->nodes_version_ = keyring->nodes_.version();
  Result<Keys> keys = keyring->read_file();
  if (!keys) return keys.error();
  keyring->keys_ = *std::move(keys);
  return keyring;
}

Result<Keyring::Keys> Keyring::read_file() const {
  const Result<std::string> text = schema::read_key_file(path_);
  if (!text) return text.error();
  Result<schema::ClusterKeys> file = schema::parse_cluster_keys(*text, path_);
  if (!file) return file.error();
  Keys keys{*std::move(file), {}};
  for (const schema::Operator& listed : keys.file.operators)
    keys.users[listed.public_key] = {User::Kind::kOperator, listed.name, listed.rights};
  for (const Key& cluster : keys.file.clusters) {
    for (const Seat seat : nodes_.places()) {
      const std::string& name = nodes_[seat];
      keys.users[schema::node_keys(cluster, name).public_key] = {User::Kind::kNode, name, schema::Rights::kFull};
    }
    keys.users[schema::member_keys(cluster).public_key] = {User::Kind::kMember, "", schema::Rights::kFull};
  }
  return keys;
}

std::optional<User> Keyring::find_user(const std::string& identity) const {
  if (!has_keys()) return identity == kAnonymous ? std::optional(User{}) : std::nullopt;
  const std::optional<Key> public_key = schema::parse_key(identity);
  if (!public_key) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = keys_.users.find(*public_key);
  return found == keys_.users.end() ? std::nullopt : std::optional(found->second);
}

const Key& Keyring::cluster(std::size_t which) const {
  TG_CHECK(has_keys());
  return keys_.file.clusters[which % keys_.file.clusters.size()];
}

std::uint64_t Keyring::fingerprint(const Key& public_key) {
  std::uint64_t fingerprint = 0;
  static_assert(sizeof fingerprint <= sizeof public_key);
  std::memcpy(&fingerprint, public_key.data(), sizeof fingerprint);
  return fingerprint;
}

std::size_t Keyring::cluster_count() const {
  const std::lock_guard lock(mutex_);
  return keys_.file.clusters.size();
}

KeyPair Keyring::own_keys(std::size_t which) const {
  const std::lock_guard lock(mutex_);
  return schema::node_keys(cluster(which), node_);
}

KeyPair Keyring::control_keys() const {
  const std::lock_guard lock(mutex_);
  return schema::control_keys(cluster(0));
}

Key Keyring::node_key(std::size_t which, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return schema::node_keys(cluster(which), name).public_key;
}

Keyring::ConnectionKeys Keyring::to_node(std::size_t which, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return {schema::node_keys(cluster(which), node_), schema::node_keys(cluster(which), name).public_key};
}

Keyring::ConnectionKeys Keyring::to_control(std::size_t which) const {
  const std::lock_guard lock(mutex_);
  return {schema::node_keys(cluster(which), node_), schema::control_keys(cluster(which)).public_key};
}

void Keyring::refresh(Log& log) {
  if (!has_keys()) return;
  const FileStamp now = file_stamp(path_);
  const std::lock_guard lock(mutex_);
  const std::uint64_t version = nodes_.version();
  const bool changed = now != stamp_;
  if (!changed && version == nodes_version_) return;
  stamp_ = now;  // a bad file is reported once
  nodes_version_ = version;
  Result<Keys> keys = read_file();
  if (!keys) {
    log.warning("keys-kept", {{"why", keys.error().message}, {"next", "the previous keys stay in use"}});
    return;
  }
  keys_ = *std::move(keys);
  if (changed)
    log.info(
        "keys-read",
        {{"file", path_}, {"cluster-keys", keys_.file.clusters.size()}, {"operators", keys_.file.operators.size()}});
}

}  // namespace tg::daemon

#include "daemon/access/keyring.h"

#include <sys/stat.h>

#include <cstring>
#include <utility>

namespace tg::daemon {

using schema::Key;
using schema::KeyPair;

Keyring::Keyring(const schema::NodeConfig& config)
    : path_(config.key_file), node_(config.node), names_(config.names()) {}

Result<std::unique_ptr<Keyring>> Keyring::open(const schema::NodeConfig& config) {
  std::unique_ptr<Keyring> keyring(new Keyring(config));
  if (!keyring->has_keys()) return keyring;
  keyring->read_ = keyring->stamp();
  Result<Keys> keys = keyring->read();
  if (!keys) return keys.error();
  keyring->keys_ = *std::move(keys);
  return keyring;
}

Keyring::Stamp Keyring::stamp() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

Result<Keyring::Keys> Keyring::read() const {
  const Result<std::string> text = schema::read_key_file(path_);
  if (!text) return text.error();
  Result<schema::ClusterKeys> file = schema::parse_cluster_keys(*text, path_);
  if (!file) return file.error();
  Keys keys{*std::move(file), {}};
  for (const schema::Operator& listed : keys.file.operators)
    keys.users[listed.public_key] = {User::Kind::kOperator, listed.name, listed.rights};
  for (const Key& cluster : keys.file.clusters) {
    for (const std::string& name : names_)
      keys.users[schema::node_keys(cluster, name).public_key] = {User::Kind::kNode, name, schema::Rights::kFull};
    keys.users[schema::member_keys(cluster).public_key] = {User::Kind::kMember, "", schema::Rights::kFull};
  }
  return keys;
}

std::optional<User> Keyring::user(const std::string& identity) const {
  if (!has_keys()) return identity == kAnybody ? std::optional(User{}) : std::nullopt;
  const std::optional<Key> open = schema::parse_key(identity);
  if (!open) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = keys_.users.find(*open);
  return found == keys_.users.end() ? std::nullopt : std::optional(found->second);
}

const Key& Keyring::cluster(std::size_t which) const {
  TG_CHECK(has_keys());
  return keys_.file.clusters[which % keys_.file.clusters.size()];
}

std::uint64_t Keyring::mark(const Key& open) {
  std::uint64_t mark = 0;
  static_assert(sizeof mark <= sizeof open);
  std::memcpy(&mark, open.data(), sizeof mark);
  return mark;
}

std::size_t Keyring::clusters() const {
  const std::lock_guard lock(mutex_);
  return keys_.file.clusters.size();
}

KeyPair Keyring::own(std::size_t which) const {
  const std::lock_guard lock(mutex_);
  return schema::node_keys(cluster(which), node_);
}

KeyPair Keyring::control() const {
  const std::lock_guard lock(mutex_);
  return schema::control_keys(cluster(0));
}

Key Keyring::node(std::size_t which, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return schema::node_keys(cluster(which), name).public_key;
}

Keyring::Ends Keyring::to_node(std::size_t which, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return {schema::node_keys(cluster(which), node_), schema::node_keys(cluster(which), name).public_key};
}

Keyring::Ends Keyring::to_control(std::size_t which) const {
  const std::lock_guard lock(mutex_);
  return {schema::node_keys(cluster(which), node_), schema::control_keys(cluster(which)).public_key};
}

void Keyring::refresh(Log& log) {
  if (!has_keys()) return;
  const Stamp now = stamp();
  const std::lock_guard lock(mutex_);
  if (now == read_) return;
  read_ = now;  // a bad file is complained about once
  Result<Keys> keys = read();
  if (!keys) {
    log.warning("keys-kept", {{"why", keys.error().message}, {"next", "the keys read before stay in use"}});
    return;
  }
  keys_ = *std::move(keys);
  log.info("keys-read",
           {{"file", path_}, {"cluster-keys", keys_.file.clusters.size()}, {"operators", keys_.file.operators.size()}});
}

}  // namespace tg::daemon

#include "schema/keys/keys.h"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "kernels/base/regular_file.h"
#include "schema/limits.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

static_assert(kKeyBytes == crypto_scalarmult_curve25519_BYTES && kKeyBytes == crypto_generichash_BYTES);

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

KeyPair pair_of(const Key& secret) {
  KeyPair pair;
  pair.secret = secret;
  crypto_scalarmult_base(pair.public_key.data(), pair.secret.data());
  return pair;
}

// Uses a keyed hash, so that a pair reveals nothing about the cluster key or about other pairs.
KeyPair derive(const Key& cluster, std::string_view purpose) {
  Key secret{};
  crypto_generichash(secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(purpose.data()),
                     purpose.size(), cluster.data(), cluster.size());
  return pair_of(secret);
}

std::string place_of(std::string_view file, int line) { return std::string(file) + ":" + std::to_string(line) + ": "; }

Result<Key> key_at(const std::string& place, const std::string& name, const std::string& value) {
  if (const std::optional<Key> key = parse_key(value)) return *key;
  return usage(place + name + " is not a key of " + std::to_string(2 * kKeyBytes) +
               " hex digits; tgctl keygen makes key files");
}

Result<Operator> parse_operator(const std::string& place, const std::string& value) {
  std::istringstream words(value);
  std::string name, rights, key, more;
  words >> name >> rights >> key >> more;
  const std::optional<Rights> known = from_word<Rights>(rights);
  if (!is_node_name(name) || !known || !more.empty())
    return usage(place + "expected operator = NAME read|full KEY; tgctl keygen --operator NAME writes this line");
  Result<Key> public_key = key_at(place, "operator " + name, key);
  if (!public_key) return public_key.error();
  return Operator{name, *known, *public_key};
}

}  // namespace

Result<ClusterKeys> parse_cluster_keys(std::string_view text, std::string_view file) {
  Result<std::vector<Assignment>> lines = parse_assignments(text, file);
  if (!lines) return usage(lines.error().message + "; is it a key file? tgctl keygen makes them");
  const auto has = [&](std::string_view key) {
    return std::ranges::find(*lines, key, &Assignment::key) != lines->end();
  };
  if (has("secret") && !has("cluster"))
    return usage(
        std::string(file) +
        " is an operator's key file, for tgctl (--key, TGCTL_KEY); a node's key-file is the cluster key file, the same "
        "on every node, which tgctl keygen FILE makes");
  ClusterKeys keys;
  std::set<std::string> names;
  for (const Assignment& line : *lines) {
    const std::string place = place_of(file, line.line);
    if (line.key == "cluster") {
      Result<Key> key = key_at(place, "cluster", line.value);
      if (!key) return key.error();
      keys.clusters.push_back(*key);
    } else if (line.key == "operator") {
      Result<Operator> listed = parse_operator(place, line.value);
      if (!listed) return listed.error();
      if (!names.insert(listed->name).second) return usage(place + "two operators are named " + listed->name);
      if (keys.operators.size() >= kMaxOperators)
        return usage(place + "more than " + std::to_string(kMaxOperators) + " operators");
      keys.operators.push_back(*listed);
    } else {
      return usage(place + "unknown key \"" + clip_text(line.key, 100) +
                   "\"; a cluster key file holds cluster and operator lines");
    }
  }
  if (keys.clusters.empty() || keys.clusters.size() > kMaxClusterKeys) {
    return usage(std::string(file) + ": " + std::to_string(keys.clusters.size()) +
                 " cluster keys; a cluster key file holds one, or two during a rotation; tgctl keygen makes it");
  }
  return keys;
}

Result<OperatorKeys> parse_operator_keys(std::string_view text, std::string_view file) {
  Result<std::vector<Assignment>> lines = parse_assignments(text, file);
  if (!lines) return usage(lines.error().message + "; is it a key file? tgctl keygen makes them");
  OperatorKeys keys;
  if (std::any_of(lines->begin(), lines->end(), [](const Assignment& line) { return line.key == "cluster"; })) {
    Result<ClusterKeys> cluster = parse_cluster_keys(text, file);
    if (!cluster) return cluster.error();
    for (const Key& key : cluster->clusters)
      keys.credentials.push_back({member_keys(key), control_keys(key).public_key});
    return keys;
  }
  std::optional<KeyPair> own;
  std::vector<Key> controls;
  for (const Assignment& line : *lines) {
    const std::string place = place_of(file, line.line);
    if (line.key == "operator") {
      if (!is_node_name(line.value)) return usage(place + "\"" + clip_text(line.value, 100) + "\" is not a name");
      keys.name = line.value;
      continue;
    }
    if (line.key != "secret" && line.key != "control")
      return usage(place + "unknown key \"" + clip_text(line.key, 100) +
                   "\"; an operator's key file holds operator, secret and control lines");
    Result<Key> key = key_at(place, line.key, line.value);
    if (!key) return key.error();
    if (line.key == "secret")
      own = pair_of(*key);
    else
      controls.push_back(*key);
  }
  if (!own || controls.empty() || controls.size() > kMaxClusterKeys)
    return usage(std::string(file) +
                 " is not a key file: it needs secret and control lines (an operator's) or cluster (a node's); tgctl "
                 "keygen makes both");
  for (const Key& control : controls) keys.credentials.push_back({*own, control});
  return keys;
}

Result<std::string> read_key_file(const std::string& path) {
  const auto failed = [&](const std::string& why) {
    return Error{ErrorKind::kUsage, path + ": the key file cannot be read: " + why};
  };
  const Result<RegularFile> file = RegularFile::open(path);
  const bool missing = !file && file.error().kind == ErrorKind::kNotFound;
  if (!file)
    return failed(file.error().message + (missing ? "; copy it here, or make the first one with tgctl keygen" : ""));
  // The checks are on the open file, not on its name, so that it cannot be replaced in between.
  if (file->facts().st_uid != 0 && file->facts().st_uid != ::geteuid())
    return failed("it belongs to another user (uid " + std::to_string(file->facts().st_uid) + "); chown it");
  if ((file->facts().st_mode & 077) != 0)
    return failed("users other than its owner can read it; run chmod 600 " + path + " if it is a key file");
  std::string text(kMaxKeyFileBytes + 1, '\0');
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(text)));
  if (!got) return failed(got.error().message);
  if (*got > kMaxKeyFileBytes) return failed("it is too large for a key file");
  text.resize(*got);
  return text;
}

std::string format_key(const Key& key) {
  std::string text(2 * kKeyBytes + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
  text.pop_back();
  return text;
}

std::optional<Key> parse_key(std::string_view text) {
  Key key{};
  if (text.size() != 2 * kKeyBytes) return std::nullopt;
  std::size_t bytes = 0;
  if (sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &bytes, nullptr) != 0 ||
      bytes != kKeyBytes)
    return std::nullopt;
  return key;
}

std::string format_cluster(const Key& cluster) { return "cluster = " + format_key(cluster) + "\n"; }

std::string format_operator(const Operator& listed) {
  return "operator = " + listed.name + " " + to_word(listed.rights) + " " + format_key(listed.public_key) + "\n";
}

std::string format_operator_keys(const std::string& name, const KeyPair& own, const std::vector<Key>& clusters) {
  std::string text = "operator = " + name + "\nsecret = " + format_key(own.secret) + "\n";
  for (const Key& cluster : clusters) text += "control = " + format_key(control_keys(cluster).public_key) + "\n";
  return text;
}

Key draw_cluster_key() {
  Key key{};
  randombytes_buf(key.data(), key.size());
  return key;
}

KeyPair draw_pair() { return pair_of(draw_cluster_key()); }

KeyPair node_keys(const Key& cluster, std::string_view node) { return derive(cluster, "node " + std::string(node)); }

KeyPair control_keys(const Key& cluster) { return derive(cluster, "control"); }

KeyPair member_keys(const Key& cluster) { return derive(cluster, "member"); }

std::string short_key(const Key& open) { return format_key(open).substr(0, 8); }

}  // namespace tg::schema

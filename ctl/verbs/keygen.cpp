#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "ctl/fetch/part_file.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"
#include "schema/keys/keys.h"

namespace tg::ctl {
namespace {

constexpr const char* kClusterHead =
    "# The key of a mesh of tgd, the same file on every node. It makes its owner a member: keep it secret, mode "
    "0600.\n";
constexpr const char* kOperatorHead =
    "# An operator's keys: tgctl --key FILE, or TGCTL_KEY=FILE. Keep it secret, mode 0600.\n";

Error failed(const std::string& path, const char* what) {
  const int number = errno;
  if (number == EEXIST) return {ErrorKind::kRefused, path + " already exists and was not changed; choose another name"};
  return {ErrorKind::kIo, path + " cannot be " + what + ": " + std::strerror(number)};
}

// Creates a file, which must not exist; only its owner can ever read it.
Status write_new(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(path, "made");
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file) == 0;
  const bool closed = ::close(file) == 0;
  if (written && closed) return {};
  const Error error = failed(path, "written");
  ::unlink(path.c_str());  // an incomplete file would block the next attempt
  return error;
}

// Replaces a file atomically: a reader gets the old or the new contents, complete.
Status replace(const std::string& path, const std::string& text) {
  const std::string beside = path + ".new";
  if (Status written = write_new(beside, text); !written) return written;
  if (std::rename(beside.c_str(), path.c_str()) == 0) return {};
  const Error error = failed(path, "replaced");
  ::unlink(beside.c_str());
  return error;
}

std::string format(const schema::ClusterKeys& keys) {
  std::string text = kClusterHead;
  for (const schema::Key& cluster : keys.clusters) text += schema::format_cluster(cluster);
  for (const schema::Operator& listed : keys.operators) text += schema::format_operator(listed);
  return text;
}

Result<schema::ClusterKeys> read_cluster(const std::string& path) {
  const Result<std::string> text = schema::read_key_file(path);
  if (!text) return text.error();
  return schema::parse_cluster_keys(*text, path);
}

std::string operator_file(const Command& command) { return command.operator_name + ".key"; }

Status add_operator(const Command& command, schema::ClusterKeys& keys) {
  for (const schema::Operator& listed : keys.operators)
    if (listed.name == command.operator_name)
      return Error{ErrorKind::kRefused, command.operand + " already lists an operator " + listed.name +
                                            "; remove its line, or choose another name"};
  const schema::KeyPair own = schema::draw_pair();
  keys.operators.push_back(
      {command.operator_name, command.read_only ? schema::Rights::kRead : schema::Rights::kFull, own.public_key});
  return write_new(operator_file(command),
                   kOperatorHead + schema::format_operator_keys(command.operator_name, own, keys.clusters));
}

Status rotate(const Command& command, schema::ClusterKeys& keys) {
  const bool two = keys.clusters.size() > 1;
  if (command.rotate == "add" && two)
    return Error{ErrorKind::kRefused,
                 command.operand + " already has two cluster keys; --rotate drop removes the second"};
  if (command.rotate != "add" && !two)
    return Error{ErrorKind::kRefused, command.operand + " has one cluster key; --rotate add comes first"};
  if (command.rotate == "add") keys.clusters.push_back(schema::draw_cluster_key());
  if (command.rotate == "use") std::swap(keys.clusters[0], keys.clusters[1]);
  if (command.rotate == "drop") keys.clusters.pop_back();
  return {};
}

Status make(const Command& command) {
  if (command.operator_name.empty() && command.rotate.empty()) {
    schema::ClusterKeys keys;
    keys.clusters.push_back(schema::draw_cluster_key());
    return write_new(command.operand, format(keys));
  }
  Result<schema::ClusterKeys> keys = read_cluster(command.operand);
  if (!keys) return keys.error();
  if (Status done = command.rotate.empty() ? add_operator(command, *keys) : rotate(command, *keys); !done) return done;
  Status replaced = replace(command.operand, format(*keys));
  if (!replaced && command.rotate.empty()) ::unlink(operator_file(command).c_str());  // no node lists it
  if (!replaced) return replaced;
  const std::string folder = std::filesystem::path(command.operand).parent_path();
  return sync_folder(folder.empty() ? "." : folder);
}

}  // namespace

int keygen(const Command& command) {
  if (const Status made = make(command); !made) return fail(made.error());
  if (!command.operator_name.empty()) print(operator_file(command) + "\n");
  print(command.operand + "\n");
  print_note("copy " + command.operand + " to every node (mode 0600); its path there is the node's key-file");
  return kOk;
}

}  // namespace tg::ctl

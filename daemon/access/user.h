// The user of a connection, as its key identifies it. Pure; any thread.
#pragma once

#include <string>

#include "schema/keys/keys.h"

namespace tg::daemon {

struct User {
  enum class Kind : std::uint8_t {
    kAnonymous,  // there are no keys
    kNode,       // has a node's key
    kOperator,   // has a listed operator's key
    kMember,     // has the cluster key but no name
  };
  Kind kind = Kind::kAnonymous;
  std::string name;
  schema::Rights rights = schema::Rights::kFull;

  // Whether this user may send messages in the name of that node.
  bool may_act_as(const std::string& node) const {
    return kind == Kind::kAnonymous || (kind == Kind::kNode && name == node);
  }
  bool operator==(const User&) const = default;
};

// For messages: "anonymous", "node NAME", "operator NAME read", "member".
std::string format_user(const User& user);

}  // namespace tg::daemon

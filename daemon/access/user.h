// The user of a connection. Pure; any thread.
#pragma once

#include <string>

#include "schema/keys/keys.h"

namespace tg::daemon {

struct User {
  enum class Kind : std::uint8_t {
    kAnybody,   // no keys: proves nothing
    kNode,      // has a node's key
    kOperator,  // has a listed operator's key
    kMember,    // has the cluster key but no name
  };
  Kind kind = Kind::kAnybody;
  std::string name;
  schema::Rights rights = schema::Rights::kFull;

  // Whether this user may speak as that node.
  bool may_be(const std::string& node) const { return kind == Kind::kAnybody || (kind == Kind::kNode && name == node); }
  bool operator==(const User&) const = default;
};

// For messages: "anybody", "node NAME", "operator NAME read", "member".
std::string format_user(const User& user);

}  // namespace tg::daemon

// The user of a connection. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "schema/keys/keys.h"

namespace tg::daemon {

// ZAP passes it on as text: "anybody", "node NAME", "operator NAME read", "member".
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

std::string format_user(const User& user);
// No value if our handler did not write the text.
std::optional<User> parse_user(const std::string& text);

}  // namespace tg::daemon

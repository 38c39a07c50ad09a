#include "daemon/access/user.h"

#include <sstream>

namespace tg::daemon {

std::string format_user(const User& user) {
  switch (user.kind) {
    case User::Kind::kAnybody:
      return "anybody";
    case User::Kind::kNode:
      return "node " + user.name;
    case User::Kind::kOperator:
      return "operator " + user.name + " " + to_word(user.rights);
    case User::Kind::kMember:
      return "member";
  }
  return "";
}

std::optional<User> parse_user(const std::string& text) {
  std::istringstream words(text);
  std::string kind, name, rights;
  words >> kind >> name >> rights;
  if (kind == "anybody") return User{};
  if (kind == "member") return User{User::Kind::kMember, "", schema::Rights::kFull};
  if (kind == "node" && !name.empty()) return User{User::Kind::kNode, name, schema::Rights::kFull};
  const std::optional<schema::Rights> known = from_word<schema::Rights>(rights);
  if (kind == "operator" && !name.empty() && known) return User{User::Kind::kOperator, name, *known};
  return std::nullopt;
}

}  // namespace tg::daemon

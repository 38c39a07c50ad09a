#include "daemon/access/user.h"

namespace tg::daemon {

std::string format_user(const User& user) {
  switch (user.kind) {
    case User::Kind::kAnonymous:
      return "anonymous";
    case User::Kind::kNode:
      return "node " + user.name;
    case User::Kind::kOperator:
      return "operator " + user.name + " " + to_word(user.rights);
    case User::Kind::kMember:
      return "member";
  }
  return "";
}

}  // namespace tg::daemon

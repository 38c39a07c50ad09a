#include "schema/version.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

std::string version_line() {
  return "tgctl " + schema::build_id() + ", protocol " + std::to_string(schema::kProtocolVersion) + "\n";
}

int version(Client& client, const Command&) {
  print(version_line());
  const Result<schema::VersionReply> reply = client.ask_for<schema::VersionReply>(schema::VersionRequest{});
  if (!reply) return fail(reply.error());
  const std::string protocol = reply->protocol == 0 ? "" : ", protocol " + std::to_string(reply->protocol);
  print(reply->node + ": tgd " + reply->build + protocol + "\n");
  return kOk;
}

}  // namespace tg::ctl

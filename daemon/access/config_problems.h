// What only the node's machine can say against its configuration: whether the key file can be used, and whether the
// peers' names resolve. Reads files and asks the resolver; ends within some seconds whatever that does.
#pragma once

#include <string>
#include <vector>

#include "schema/options/node_config.h"

namespace tg::daemon {

// A sentence each.
std::vector<std::string> config_problems(const schema::NodeConfig& config);

}  // namespace tg::daemon

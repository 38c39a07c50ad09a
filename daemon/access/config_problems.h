// Problems of a configuration that only the node's machine can find: a key file that cannot be used, peers' names that
// do not resolve. Reads files and asks the resolver; returns within seconds whatever the resolver does.
#pragma once

#include <string>
#include <vector>

#include "schema/options/node_config.h"

namespace tg::daemon {

// One sentence for each problem.
std::vector<std::string> config_problems(const schema::NodeConfig& config);

}  // namespace tg::daemon

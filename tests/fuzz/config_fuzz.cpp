// Any text as tgd.conf: an error that names the file, or a configuration whose values are read again from how they are
// shown.
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/access/networks.h"
#include "schema/options/node_config.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace tg::schema;

void check_shown(const NodeConfig& config) {
  NodeConfig again;
  for (const Option<NodeConfig>& row : node_options()) {
    const std::string shown = row.get(config);
    if (row.repeated || shown.empty()) continue;
    const tg::Status set = row.set(again, shown);
    TG_CHECK(set.ok() && row.get(again) == shown, row.name, shown, row.get(again));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tg::fuzz::MemoryFile file(data, size);
  const std::string path = file.path();
  const char* const arguments[] = {"tgd", "--config", path.c_str()};
  const tg::Result<CommandLine> line = parse_node_command_line(3, arguments);
  if (!line) {
    TG_CHECK(line.error().message.starts_with(path), line.error().message);
    return 0;
  }
  const NodeConfig& config = line->config;
  TG_CHECK(config.self().name == config.node && config.nodes[config.seat()] == config.node, config.node);
  for (const std::string& host : config.control_allow)
    if (const auto network = tg::daemon::parse_network(host)) TG_CHECK(network->contains(*network), host);
  check_shown(config);
  return 0;
}

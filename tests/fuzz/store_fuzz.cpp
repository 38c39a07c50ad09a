// Any bytes as a line of views.jsonl, and as the metadata of a state file (NAME=TEXT, a line each): an error, or what
// would be written again.
#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "daemon/store/state_facts.h"
#include "daemon/store/view_interval.h"
#include "kernels/base/check.h"

namespace {

void take_line(const std::string& text) {
  const auto interval = tg::daemon::interval_from_line(text);
  if (!interval) return;
  const std::string line = tg::daemon::interval_to_line(*interval);
  const auto again = tg::daemon::interval_from_line(line);
  TG_CHECK(again.ok() && tg::daemon::interval_to_line(*again) == line, line);
}

void take_metadata(const std::string& text) {
  std::map<std::string, std::string> metadata;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      metadata.emplace(line.substr(0, equals), line.substr(equals + 1));
  const auto facts = tg::daemon::parse_facts(metadata);
  if (!facts || facts->key == 0) return;
  const auto written = tg::daemon::to_metadata(*facts);
  const auto again = tg::daemon::parse_facts(written);
  TG_CHECK(again.ok() && tg::daemon::to_metadata(*again) == written, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  take_line(text);
  take_metadata(text);
  return 0;
}

// Any text as a key file, a node's and an operator's: an error that names the file, or keys that are read again from
// how they are written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/check.h"
#include "schema/keys/keys.h"
#include "schema/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::schema;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto keys = parse_cluster_keys(text, "file")) {
    std::string written;
    for (const Key& key : keys->clusters) written += format_cluster(key);
    for (const Operator& listed : keys->operators) written += format_operator(listed);
    const auto again = parse_cluster_keys(written, "again");
    TG_CHECK(again.ok(), again.ok() ? "" : again.error().message);
    TG_CHECK(again->clusters == keys->clusters && again->operators == keys->operators, written);
  } else {
    TG_CHECK(keys.error().message.starts_with("file"), keys.error().message);
  }
  if (const auto keys = parse_operator_keys(text, "file")) {
    TG_CHECK(!keys->credentials.empty() && keys->credentials.size() <= kMaxClusterKeys, keys->credentials.size());
  } else {
    TG_CHECK(keys.error().message.starts_with("file"), keys.error().message);
  }
  return 0;
}

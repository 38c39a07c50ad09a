// Any bytes as what tgctl fetches from a node that may lie: run.json, a model file and its description, and what is
// shown of it. Byte 0 ends a description; a record follows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ctl/fetch/member_record.h"
#include "ctl/fetch/model_json.h"
#include "ctl/fetch/received_file.h"
#include "ctl/terminal/visible.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::ctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto record = parse_member_record("node-a", text, "lenet-1")) {
    TG_CHECK(record->json == text);
    (void)common_mark({*record, *record}, "model.safetensors");
  } else {
    TG_CHECK(record.error().kind == tg::ErrorKind::kCorrupt, record.error().message);
  }
  const std::size_t end = std::min(text.find('\0'), text.size());
  if (const auto json = compose_model_json(text.substr(0, end), end < size ? text.substr(end + 1) : text))
    TG_CHECK(json->ends_with("}\n"), *json);
  const tg::fuzz::MemoryFile file(data, size);
  (void)check_model(file.path(), {.run = "lenet-1", .step = 100, .digest = 0xab});
  (void)metadata_value(file.path(), "description");
  const std::string shown = visible(text);
  TG_CHECK(visible(shown) == shown, shown);
  TG_CHECK(std::ranges::all_of(shown,
                               [](char c) { return c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20; }),
           shown);
  return 0;
}

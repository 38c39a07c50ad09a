// Any text as what a node keeps in JSON, run.json: an error, or a record that is read again from how it
// is written.
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/store/run_record.h"
#include "schema/control/control.h"
#include "schema/described/json_form.h"
#include "tests/fuzz/memory_file.h"

namespace {

void check_record(const std::string& text) {
  using namespace tg::daemon;
  const tg::Result<RunRecord> record = record_from_json(text);
  if (!record) return;
  const std::string written = record_to_json(*record);
  const tg::Result<RunRecord> again = record_from_json(written);
  TG_CHECK(again.ok(), again.ok() ? "" : again.error().message, written);
  TG_CHECK(record_to_json(*again) == written, written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_record(text);
  return 0;
}

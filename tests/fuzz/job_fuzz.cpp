// parse_job on any text: no crash, and an accepted job survives its canonical form.
#include <cstddef>
#include <cstdint>

#include "schema/options/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::schema;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tg::Result<JobSpec> job = parse_job(text, "fuzz");
  if (!job) return 0;
  const tg::Result<JobSpec> again = parse_job(canonical_job(*job), "canonical");
  TG_CHECK(again.ok(), again.ok() ? "" : again.error().message);
  JobSpec resolved = *job;
  resolved.last_layer = resolved_last_layer(*job);  // the canonical form says which
  TG_CHECK(*again == resolved);
  return 0;
}

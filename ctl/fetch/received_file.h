// Checks that a fetched file is what the member wrote. It is read again from the disk, so that the user gets what was
// checked. Errors (kCorrupt) complete "NODE's FILE is damaged: ".
#pragma once

#include <cstdint>
#include <string>

#include "ctl/fetch/member_record.h"
#include "kernels/base/status.h"

namespace tg::ctl {

Result<FileMark> mark_of(const std::string& path);  // kIo if it cannot be read
Status check_mark(const FileMark& received, const FileMark& recorded);

// The state that a model file must hold.
struct ModelState {
  std::string run;
  std::uint64_t step = 0, digest = 0;
};
// Checks the file's own metadata: run, step and digest, and the hash of its values.
Status check_model(const std::string& path, const ModelState& state);
// The metadata of a checked model file under this name; "" if it has none.
Result<std::string> metadata_value(const std::string& path, const char* name);

}  // namespace tg::ctl

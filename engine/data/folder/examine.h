// Finds out about the pictures of a folder before a run begins: the hash of their bytes, their size, and whether they
// can be decoded to the last pixel. On several threads; a picture that has not changed since it was found good is only
// looked up (known_pictures.h). Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/pictures/decode.h"
#include "engine/dataset.h"

namespace tg::engine {

struct PictureFacts {
  std::uint64_t hash = 0;        // hash of the file's bytes
  std::uint64_t bytes = 0;       // their number
  PictureSize size;              // zeros if there is a problem
  std::optional<Error> problem;  // kCorrupt: it is damaged; others: it cannot be read now
};

// files: below options.directory. Calls options.advanced after each; what that throws passes through, and what was
// found out until then is remembered.
std::vector<PictureFacts> examine_pictures(const DatasetOptions& options, const std::vector<std::string>& files);

}  // namespace tg::engine

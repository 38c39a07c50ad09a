// Pictures in files: JPEG (libjpeg-turbo) and PNG (libpng), told apart by their first bytes. Any bytes give a picture
// or kCorrupt, which names the file; memory use is bounded (limits.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/data/picture.h"

namespace tg::engine {

struct PictureSize {
  int channels = 0, height = 0, width = 0;  // 1 = grey, 3 = anything else
  bool operator==(const PictureSize&) const = default;
};

// Reads the header only.
Result<PictureSize> read_picture_size(std::span<const std::uint8_t> bytes, const std::string& file);

// Gives 1 or 3 channels of 8 bits. A JPEG's sides are divided by what `shrink` returns, rounding up; a PNG's are not.
// CMYK becomes RGB as in Pillow; a JPEG whose data end too early or break their code is damaged, even if part of it
// could be shown.
Status decode_picture(std::span<const std::uint8_t> bytes, const Shrink& shrink, const std::string& file,
                      Picture& picture);

}  // namespace tg::engine

// Pictures in files: JPEG (libjpeg-turbo) and PNG (libpng), told apart by their first bytes. Any bytes give a picture
// or kCorrupt, which names the file; what is held meanwhile is bounded (limits.h). Pure; any thread.
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

// From the header alone.
Result<PictureSize> read_picture_size(std::span<const std::uint8_t> bytes, const std::string& file);

// 1 or 3 channels of 8 bits. A JPEG is divided by what `shrink` says, rounding up; a PNG is not. CMYK becomes RGB as
// Pillow makes it; a JPEG whose data end too early or break their code is damaged, even where something could be seen.
Status decode_picture(std::span<const std::uint8_t> bytes, const Shrink& shrink, const std::string& file,
                      Picture& picture);

}  // namespace tg::engine

// Any bytes as a picture in a file: an error that names the file, or pixels of the size that the header has.
#include <cstdint>
#include <string>

#include "engine/data/pictures/decode.h"
#include "kernels/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tg::engine;
  const std::span<const std::uint8_t> bytes(data, size);
  const auto told = read_picture_size(bytes, "file");
  if (!told) {
    TG_CHECK(told.error().message.starts_with("file is damaged: "), told.error().message);
    return 0;
  }
  // Larger ones only take longer: libjpeg and libpng get to see every form with these.
  constexpr int kMaxSide = 2000;
  if (told->height > kMaxSide || told->width > kMaxSide) return 0;
  for (const int shrink : {1, 8}) {
    Picture picture;
    const auto choose = [&](int height, int width) {
      TG_CHECK(height == told->height && width == told->width, height, width);
      return shrink;
    };
    const tg::Status decoded = decode_picture(bytes, choose, "file", picture);
    if (!decoded) {
      TG_CHECK(decoded.error().message.starts_with("file is damaged: "), decoded.error().message);
      continue;
    }
    TG_CHECK(picture.channels == told->channels, picture.channels);
    TG_CHECK(picture.height >= 1 && picture.height <= told->height && picture.width <= told->width, picture.height);
    const auto elements = static_cast<std::size_t>(picture.channels) * static_cast<std::size_t>(picture.height) *
                          static_cast<std::size_t>(picture.width);
    TG_CHECK(picture.pixels.size() == elements, picture.pixels.size());
  }
  return 0;
}

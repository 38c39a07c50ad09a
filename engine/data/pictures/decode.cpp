#include "engine/data/pictures/decode.h"

#include <algorithm>
#include <array>
#include <memory>

#include "engine/data/limits.h"
#include "engine/data/pictures/decoder.h"

namespace tg::engine {
namespace {

constexpr std::array<std::uint8_t, 3> kJpeg = {0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a};
constexpr int kMaxRatio = 100;  // ratio of the sides: resizing the shorter one scales the longer one too

Error damaged(const std::string& file, const std::string& what) {
  return {ErrorKind::kCorrupt, file + " is damaged: " + what + "; fetch it again, remove it, or set damaged = skip"};
}

template <std::size_t kSize>
bool begins(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, kSize>& magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

// Returns a decoder that has read the header and found it within the limits.
Result<std::unique_ptr<Decoder>> open(std::span<const std::uint8_t> bytes, const std::string& file) {
  if (bytes.empty()) return damaged(file, "it is empty");
  std::unique_ptr<Decoder> decoder;
  if (begins(bytes, kJpeg))
    decoder = make_jpeg_decoder(bytes);
  else if (begins(bytes, kPng))
    decoder = make_png_decoder(bytes);
  else
    return damaged(file, "it begins neither as a JPEG nor as a PNG");
  if (!decoder->read_header()) return damaged(file, decoder->problem());
  const auto [least, most] = std::minmax({decoder->height(), decoder->width()});
  const std::string size = std::to_string(decoder->width()) + "x" + std::to_string(decoder->height());
  if (least < 1 || most > kMaxPictureSide ||
      static_cast<std::size_t>(decoder->height()) * static_cast<std::size_t>(decoder->width()) > kMaxPicturePixels)
    return damaged(file, "it claims " + size + " pixels, more than the " + std::to_string(kMaxPicturePixels) +
                             " that a picture may have");
  if (most / least > kMaxRatio)
    return damaged(
        file, "it claims " + size + " pixels, one side more than " + std::to_string(kMaxRatio) + " times the other");
  return decoder;
}

}  // namespace

Result<PictureSize> read_picture_size(std::span<const std::uint8_t> bytes, const std::string& file) {
  const auto decoder = open(bytes, file);
  if (!decoder) return decoder.error();
  return PictureSize{(*decoder)->channels(), (*decoder)->height(), (*decoder)->width()};
}

Status decode_picture(std::span<const std::uint8_t> bytes, const Shrink& shrink, const std::string& file,
                      Picture& picture) {
  const auto decoder = open(bytes, file);
  if (!decoder) return decoder.error();
  const int by = shrink((*decoder)->height(), (*decoder)->width());
  if (!(*decoder)->read_pixels(by, picture)) return damaged(file, (*decoder)->problem());
  return {};
}

}  // namespace tg::engine

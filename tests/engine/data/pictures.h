// Small pictures as files, for tests: JPEG by libjpeg, PNG by libpng. Failures end the test.
#pragma once

#include <cstdio>
#include <cstdlib>
// cstdio is included before jpeglib.h, which uses what it declares.
#include <jpeglib.h>
#include <png.h>

#include <cstdint>
#include <stdexcept>

#include "engine/data/picture.h"
#include "tests/engine/data/support.h"

namespace tg::engine::test {

// Smooth, so that JPEG keeps it nearly.
inline Picture ramp(int channels, int height, int width, int salt = 0) {
  Picture picture;
  picture.shape(channels, height, width);
  std::size_t at = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        picture.pixels[at++] = static_cast<std::uint8_t>((c == 1 ? 200 * x / width : 200 * y / height) + salt % 50);
    }
  }
  return picture;
}

struct JpegForm {
  int quality = 95;
  bool progressive = false;
  bool cmyk = false;  // the picture has 4 channels
};

inline Bytes to_jpeg(const Picture& picture, const JpegForm& form = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* made = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &made, &size);
  info.image_width = static_cast<unsigned>(picture.width);
  info.image_height = static_cast<unsigned>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : form.cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, form.quality, TRUE);
  if (form.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < picture.height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(picture.pixels.data()) + y * picture.width * picture.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(made, made + size);
  std::free(made);
  return bytes;
}

inline Bytes to_png(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : picture.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(image.message);
  Bytes bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(image.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace tg::engine::test

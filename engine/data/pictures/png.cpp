#include "engine/data/pictures/decoder.h"

#include <png.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "engine/data/limits.h"

namespace tg::engine {
namespace {

class PngDecoder final : public Decoder {
 public:
  explicit PngDecoder(std::span<const std::uint8_t> bytes) : left_(bytes) {}
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  bool read_header() override {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, ignore);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    return read_info();
  }

  bool read_pixels(int, Picture& picture) override {
    picture.shape(channels_, height_, width_);
    rows_.resize(static_cast<std::size_t>(height_));
    const std::size_t line = static_cast<std::size_t>(width_) * static_cast<std::size_t>(channels_);
    for (std::size_t y = 0; y < rows_.size(); ++y) rows_[y] = picture.pixels.data() + y * line;
    return read_rows(line);
  }

 private:
  [[noreturn]] static void leave(png_structp png, png_const_charp problem) {
    auto* const self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self->problem_, sizeof self->problem_, "%s", problem);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void take(png_structp png, png_bytep out, std::size_t size) {
    auto* const self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->left_.size()) png_error(png, "it ends too early");
    std::memcpy(out, self->left_.data(), size);
    self->left_ = self->left_.subspan(size);
  }

  // Asks libpng to convert any kind of picture to grey or RGB of 8 bits.
  bool read_info() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, take);
    png_set_user_limits(png_, kMaxPictureSide, kMaxPictureSide);
    png_set_chunk_malloc_max(png_, kMaxPngChunkBytes);
    png_set_chunk_cache_max(png_, 1);  // keeps no text chunks: a thousand of them would be kept otherwise
    png_read_info(png_, info_);
    height_ = static_cast<int>(png_get_image_height(png_, info_));
    width_ = static_cast<int>(png_get_image_width(png_, info_));
    channels_ = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    return true;
  }

  bool read_rows(std::size_t line) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != line) png_error(png_, "its lines are not as long as its header says");
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);  // verifies the checksums
    return true;
  }

  std::span<const std::uint8_t> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
};

}  // namespace

std::unique_ptr<Decoder> make_png_decoder(std::span<const std::uint8_t> bytes) {
  return std::make_unique<PngDecoder>(bytes);
}

}  // namespace tg::engine

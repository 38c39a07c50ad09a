#include "engine/data/pictures/decoder.h"

#include <csetjmp>
#include <cstdio>

// The order matters: jpeglib.h uses declarations of cstdio.
#include <jpeglib.h>

#include <jerror.h>

#include <vector>

#include "engine/data/limits.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

// libjpeg passes its own structures to the functions below, so they come first here.
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char* problem;  // 256 bytes
};
static_assert(JMSG_LENGTH_MAX <= 256);

[[noreturn]] void leave(j_common_ptr info) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  errors->base.format_message(info, errors->problem);
  std::longjmp(errors->escape, 1);
}

// Makes errors of those warnings, which libjpeg would ignore, that mean missing or wrong pixels.
void warn(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      leave(info);
    default:
      break;
  }
}

void watch_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxJpegScans) return;
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  std::snprintf(errors->problem, 256, "it has more than %d scans", kMaxJpegScans);
  std::longjmp(errors->escape, 1);
}

// Computes value * other / 255, rounded as in Pillow.
unsigned scaled(unsigned value, unsigned other) {
  const unsigned product = value * other + 128;
  return ((product >> 8) + product) >> 8;
}

// Adobe's CMYK is stored inverted.
void to_rgb(const std::uint8_t* cmyk, int width, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const unsigned light = cmyk[3];
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(light - scaled(255u - cmyk[c], light));
  }
}

class JpegDecoder final : public Decoder {
 public:
  explicit JpegDecoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = warn;
    errors_.problem = problem_;
    progress_.progress_monitor = watch_scans;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  bool read_header() override {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&info_, TRUE);
    channels_ = info_.num_components == 1 ? 1 : 3;
    height_ = static_cast<int>(info_.image_height);
    width_ = static_cast<int>(info_.image_width);
    return true;
  }

  bool read_pixels(int shrink, Picture& picture) override {
    if (!begin(shrink)) return false;
    picture.shape(channels_, static_cast<int>(info_.output_height), static_cast<int>(info_.output_width));
    if (info_.out_color_space == JCS_CMYK) line_.resize(std::size_t{4} * info_.output_width);
    return read_lines(picture.pixels.data());
  }

 private:
  bool begin(int shrink) {
    if (setjmp(errors_.escape) != 0) return false;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(shrink);
    info_.out_color_space = info_.num_components == 1 ? JCS_GRAYSCALE : info_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool read_lines(std::uint8_t* pixels) {
    if (setjmp(errors_.escape) != 0) return false;
    while (info_.output_scanline < info_.output_height) {
      at_ = pixels + std::size_t{info_.output_scanline} * info_.output_width * static_cast<unsigned>(channels_);
      JSAMPROW row = line_.empty() ? at_ : line_.data();
      jpeg_read_scanlines(&info_, &row, 1);
      if (!line_.empty()) to_rgb(line_.data(), static_cast<int>(info_.output_width), at_);
    }
    return true;
  }

  const std::span<const std::uint8_t> bytes_;
  jpeg_decompress_struct info_{};
  Errors errors_{};
  jpeg_progress_mgr progress_{};
  std::vector<std::uint8_t> line_;  // a line of CMYK
  std::uint8_t* at_ = nullptr;      // where the next line goes
};

}  // namespace

std::unique_ptr<Decoder> make_jpeg_decoder(std::span<const std::uint8_t> bytes) {
  return std::make_unique<JpegDecoder>(bytes);
}

}  // namespace tg::engine

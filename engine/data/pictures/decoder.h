// The interface of the decoders: first the header, which gives the size, then the pixels. An object decodes one file,
// whose bytes must outlive it. The libraries report errors by a long jump: it leads from the library to a member
// function that has nothing to destroy, and becomes that function's result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/data/picture.h"

namespace tg::engine {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // On false, problem() says why.
  virtual bool read_header() = 0;
  virtual bool read_pixels(int shrink, Picture& picture) = 0;

  int channels() const { return channels_; }  // 1 or 3, once the header is read
  int height() const { return height_; }
  int width() const { return width_; }
  const char* problem() const { return problem_; }

 protected:
  int channels_ = 0, height_ = 0, width_ = 0;
  char problem_[256] = "it cannot be decoded";
};

// libjpeg-turbo and libpng; neither is used anywhere else. `bytes` must outlive the decoder.
std::unique_ptr<Decoder> make_jpeg_decoder(std::span<const std::uint8_t> bytes);
std::unique_ptr<Decoder> make_png_decoder(std::span<const std::uint8_t> bytes);

}  // namespace tg::engine

// A decoded picture, and the source of pictures that are not held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

// Rows of pixels, with a pixel's channels next to each other: pixels[(y * width + x) * channels + c]. 1 channel is
// grey, 3 are red, green, blue.
struct Picture {
  int channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  void shape(int c, int h, int w) {
    channels = c;
    height = h;
    width = w;
    pixels.resize(static_cast<std::size_t>(c) * static_cast<std::size_t>(h) * static_cast<std::size_t>(w));
  }
};

// Called once per picture with its full size: returns by how much a decoder may divide the sides: 8, 4, 2 or 1.
using Shrink = std::function<int(int height, int width)>;

class PictureSource {
 public:
  virtual ~PictureSource() = default;
  // Any thread, several at a time. Errors name the file: kCorrupt if it is damaged, others if it cannot be read now.
  virtual Status read(std::size_t index, const Shrink& shrink, Picture& picture) const = 0;
};

}  // namespace tg::engine

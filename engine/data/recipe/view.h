// Bytes of a picture wherever they lie: element (c, y, x) is at[c * plane + y * row + x * column]. Cropping, flipping
// and making three channels of one change the view and move no byte. The bytes must outlive the view. Values; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/data/picture.h"
#include "engine/model.h"
#include "kernels/base/check.h"

namespace tg::engine {

struct PictureView {
  const std::uint8_t* at = nullptr;
  int channels = 0, height = 0, width = 0;
  std::ptrdiff_t plane = 0, row = 0, column = 0;

  const std::uint8_t* line(int c, int y) const { return at + c * plane + y * row; }
};

inline PictureView view_of(const Picture& picture) {
  return {picture.pixels.data(),
          picture.channels,
          picture.height,
          picture.width,
          1,
          static_cast<std::ptrdiff_t>(picture.width) * picture.channels,
          picture.channels};
}

// A view of pixels stored as CHW.
inline PictureView view_of(const std::uint8_t* pixels, const ImageShape& shape) {
  return {pixels,
          shape.channels,
          shape.height,
          shape.width,
          static_cast<std::ptrdiff_t>(shape.height) * shape.width,
          shape.width,
          1};
}

inline PictureView cropped(PictureView view, int top, int left, int height, int width) {
  TG_CHECK(top >= 0 && left >= 0 && top + height <= view.height && left + width <= view.width, top, left, height,
           width);
  view.at += top * view.row + left * view.column;
  view.height = height;
  view.width = width;
  return view;
}

inline PictureView flipped(PictureView view) {
  view.at += (view.width - 1) * view.column;
  view.column = -view.column;
  return view;
}

}  // namespace tg::engine

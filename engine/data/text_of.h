// Shapes in messages. Pure.
#pragma once

#include <string>

#include "engine/model.h"

namespace tg::engine {

inline std::string text_of(const ImageShape& shape) {
  if (shape.height == 0 && shape.channels != 0) return "different sizes";
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

}  // namespace tg::engine

// Shapes and numbers in messages. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model.h"

namespace tg::engine {

// 1,200
inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

// The shape of stored samples, "different sizes" where they vary; text_of in graph/shapes.h knows only one size.
inline std::string shape_text(const ImageShape& shape) {
  if (shape.height == 0 && shape.channels != 0) return "different sizes";
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

}  // namespace tg::engine

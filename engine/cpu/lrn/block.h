// The layout of rows in scratch memory while sums over their windows are computed: several rows at once, with at least
// 2 * radius zeros between the channels of two rows, so that no window needs to know where a row ends.
//
//   | radius zeros | channels terms | zeros up to the stride | radius zeros | channels terms | zeros ...
//
// Internal linkage: each instruction set has its own copy.
#pragma once

#include "engine/cpu/lrn/lrn.h"

namespace tg::engine::cpu::lrn {
namespace {

constexpr std::size_t kLine = 16;  // floats of a cache line, and of the widest register

constexpr std::size_t whole_lines(std::size_t floats) { return (floats + kLine - 1) / kLine * kLine; }

struct Block {
  static constexpr std::size_t kFloats = 1024;  // size of an array, about: all fit the first level cache
  static constexpr std::size_t kArrays = 4;     // squares, terms, scales, sums

  explicit Block(const Window& of)
      : stride(whole_lines(of.channels + 2 * of.radius)),
        rows(stride < kFloats ? kFloats / stride : 1),
        array(rows * stride + whole_lines(2 * of.radius)) {}

  std::size_t stride;  // floats from row to row
  std::size_t rows;
  std::size_t array;  // floats of each array, with room for the last row's windows
};

}  // namespace
}  // namespace tg::engine::cpu::lrn

// Transposes matrices that lie one after another. A block moves a tile through shared memory, so that neighbouring
// threads read neighbours and write neighbours. Images have few channels and many pixels, or the other way around: a
// tile is as narrow as its matrix, rounded to a power of two, and correspondingly longer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cuda/operators/bodies/bf16.h"
#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

template <class From, class To>
struct Transpose {
  static constexpr int kPerThread = 4, kTileBits = 10, kBankBits = 5;  // 32 banks of shared memory, 4 bytes wide
  static_assert(1 << kTileBits == kThreads * kPerThread);

  struct Cell {
    float at[kPerThread];
  };

  Transpose(const Matrices& of, const From* x, To* y)
      : rows(static_cast<std::uint32_t>(of.rows)),
        columns(static_cast<std::uint32_t>(of.columns)),
        columns_are_short(of.columns < of.rows),
        short_bits(bits_of(std::min(of.rows, of.columns))),
        row_bits(columns_are_short ? kTileBits - short_bits : short_bits),
        tiles_down(tiles(of.rows, row_bits)),
        tiles_across(tiles(of.columns, kTileBits - row_bits)),
        matrices(of.count),
        by_matrix(tiles_down * tiles_across),
        by_tile_row(tiles_across),
        from(x),
        to(y) {}

  std::uint32_t rows, columns;
  bool columns_are_short;
  int short_bits, row_bits;
  std::uint64_t tiles_down, tiles_across, matrices;
  Divider by_matrix, by_tile_row;
  const From* from;
  To* to;

  std::uint64_t blocks() const { return matrices * tiles_down * tiles_across; }
  static constexpr int steps() { return 2; }

  TG_HOST_DEVICE void step(int step, std::uint64_t block, int thread, Cell* cells) const {
    const Divider::Parts matrix = by_matrix(block);
    const Divider::Parts tile = by_tile_row.of_small(matrix.remainder);
    const std::uint32_t first_row = static_cast<std::uint32_t>(tile.quotient) << row_bits;
    const std::uint32_t first_column = tile.remainder << (kTileBits - row_bits);
    const std::uint64_t origin = matrix.quotient * rows * columns;
    for (int k = 0; k < kPerThread; ++k) {
      const Spot spot = spot_of(step, static_cast<std::uint32_t>(k * kThreads + thread));
      const std::uint32_t row = first_row + spot.row, column = first_column + spot.column;
      if (row >= rows || column >= columns) continue;
      float& shared = cells[spot.place / kPerThread].at[spot.place % kPerThread];
      if (step == 0) {
        shared = converted<float>(from[origin + std::uint64_t{row} * columns + column]);
      } else {
        to[origin + std::uint64_t{column} * rows + row] = converted<To>(shared);
      }
    }
  }

  // The tile's value number i, counted along the rows when reading and along the columns when writing. place: its place
  // in shared memory; 32 values with neighbouring numbers lie in 32 banks, since each line along the long side is
  // shifted against the one before by as many places as 32 of them take of it.
  struct Spot {
    std::uint32_t row, column, place;
  };
  TG_HOST_DEVICE Spot spot_of(int step, std::uint32_t i) const {
    const int column_bits = kTileBits - row_bits;
    const std::uint32_t row = step == 0 ? i >> column_bits : i & ((1U << row_bits) - 1);
    const std::uint32_t column = step == 0 ? i & ((1U << column_bits) - 1) : i >> row_bits;
    const std::uint32_t across = columns_are_short ? column : row, along = columns_are_short ? row : column;
    return {row, column, (across << (kTileBits - short_bits)) + (along ^ (across << (kBankBits - short_bits)))};
  }

 private:
  // Bits of a tile's short side, which is at most 32.
  static int bits_of(std::size_t side) {
    int bits = 0;
    while (bits < kBankBits && std::size_t{1} << bits < side) ++bits;
    return bits;
  }
  static std::uint64_t tiles(std::size_t side, int bits) { return (side + (std::size_t{1} << bits) - 1) >> bits; }
};

}  // namespace tg::engine::cuda::bodies

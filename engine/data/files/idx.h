// MNIST's IDX files: big-endian throughout. IDX of other shapes and types: array.h.
//
//   file   := 0x00 0x00 type rank size{rank} data       type = 0x08 (unsigned byte)
//   images := rank 3, sizes count, height, width        data = count * height * width bytes, row-major
//   labels := rank 1, size count                        data = count bytes
//
// The parsers are pure and safe on any bytes; `file` is the name that errors carry. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/dataset.h"

namespace tg::engine {

inline constexpr std::uint32_t kMaxIdxSide = 1024;  // pixels

// Fills stored and pixels; labels stay empty.
Result<ImageSet> parse_idx_images(std::span<const std::uint8_t> bytes, const std::string& file);
// Refuses labels that are not below `classes`.
Result<std::vector<std::uint16_t>> parse_idx_labels(std::span<const std::uint8_t> bytes, int classes,
                                                    const std::string& file);

// Loads the four files of MNIST from `directory` or its folder mnist/, plain or .gz, named train-images-idx3-ubyte or
// train-images.idx3-ubyte and so on. Fills train, test, classes and hash.
Result<Dataset> load_mnist(const std::string& directory);

// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kInstalledFashionMnist = "/usr/share/datasets/fashion-mnist";
// Loads files of the same names from fashion-mnist/ in `directory`, else from where Debian's package puts them, else
// from `directory` itself.
Result<Dataset> load_fashion_mnist(const std::string& directory);

}  // namespace tg::engine

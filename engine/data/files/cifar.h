// The binary batches of CIFAR-10:
//
//   file   := record+                 record := label pixels{3072}      label = one byte, 0 to 9
//   pixels := red, green, blue planes of 32 x 32 bytes, row-major
//
// A standard file has 10,000 records; any whole number of them is read. The parser is pure and safe on any bytes. Any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/dataset.h"

namespace tg::engine {

inline constexpr std::size_t kCifarRecordBytes = 1 + 3 * 32 * 32;

// Appends the records to `set`; on an error `set` is as before.
Status parse_cifar_batch(std::span<const std::uint8_t> bytes, const std::string& file, ImageSet& set);

// data_batch_1.bin to data_batch_5.bin and test_batch.bin from `directory` or its cifar-10-batches-bin/ folder.
Result<Dataset> load_cifar10(const std::string& directory);

}  // namespace tg::engine

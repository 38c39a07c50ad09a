// The binary batches of CIFAR-10 and CIFAR-100:
//
//   file   := record*                     no header
//   record := label[1 or 2] pixel[3072]   CIFAR-10: class 0..9; CIFAR-100: superclass 0..19 (not used), class 0..99;
//                                         red, green, blue planes of 32 x 32 bytes, row-major
//
// A file may have any number of records. The parser is pure and safe on any bytes. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/dataset.h"

namespace tg::engine {

struct CifarFormat {
  const char* name;
  std::size_t label_bytes;  // the last byte is the class
  int classes;
  std::size_t record_bytes() const { return label_bytes + 3 * 32 * 32; }
};
inline constexpr CifarFormat kCifar10Format{"CIFAR-10", 1, 10};
inline constexpr CifarFormat kCifar100Format{"CIFAR-100", 2, 100};

// Appends the records to `set`; on an error `set` is as before.
Status parse_cifar_batch(std::span<const std::uint8_t> bytes, const CifarFormat& format, const std::string& file,
                         ImageSet& set);

// Loads data_batch_1.bin to data_batch_5.bin and test_batch.bin from `directory` or its folder cifar-10-batches-bin/;
// for CIFAR-100 train.bin and test.bin, there or in cifar-100-binary/, and the names of the classes from
// fine_label_names.txt if that is beside them.
Result<Dataset> load_cifar(DatasetKind kind, const std::string& directory);

}  // namespace tg::engine

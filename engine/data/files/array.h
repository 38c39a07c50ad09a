// Arrays in files: .npy (numpy's format, versions 1 to 3) and IDX.
//
//   npy := 0x93 "NUMPY" major minor size[2, or 4 from version 2 on; little-endian] header[size] data
//   header := a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
//   idx := 0x00 0x00 type rank size{rank} data      sizes 4 bytes each, big-endian throughout
//   type := 0x08 uint8, 0x09 int8, 0x0b int16, 0x0c int32, 0x0d float32, 0x0e float64
//
// Any bytes give an array or an error that names the file; no more memory is taken than is available. A file is read
// piece by piece. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

class DataFile;

struct ArrayHeader {
  char kind = 'u';        // kind of numbers: 'u' unsigned, 'i' signed, 'f' with a fraction
  std::size_t bytes = 1;  // per number
  bool big_endian = false;
  std::vector<std::uint64_t> shape;   // 1 to kMaxArrayRank sizes; the first, of samples, at most kMaxSamples
  std::uint64_t sample_elements = 1;  // product of the other sizes, at most kMaxSampleElements
  std::uint64_t data_bytes() const { return shape[0] * sample_elements * bytes; }
};

// Replaces the content of `bytes` by up to `most` further bytes of a file; fewer at its end.
using ReadNext = std::function<Status(std::size_t most, std::vector<std::uint8_t>& bytes)>;
ReadNext reader_of(DataFile& file);
// Gets every byte that was read, in order.
using Seen = std::function<void(std::span<const std::uint8_t>)>;

enum class ArrayFormat : std::uint8_t { kNpy, kIdx };

// Samples: uint8 stay bytes, float32 and float64 become floats, which must be finite.
struct SampleArray {
  std::vector<std::uint64_t> shape;
  std::vector<std::uint8_t> bytes;  // either these or the floats are filled
  std::vector<float> floats;
};
// The header alone: what an array of samples, or of labels, says that it is.
Result<ArrayHeader> read_array_header(ArrayFormat format, const ReadNext& next, const Seen& seen,
                                      const std::string& file);
Result<SampleArray> read_samples(ArrayFormat format, const ReadNext& next, const Seen& seen, const std::string& file);
// Reads labels, whole numbers from 0 to kMaxClasses - 1, one per sample.
Result<std::vector<std::uint16_t>> read_labels(ArrayFormat format, const ReadNext& next, const Seen& seen,
                                               const std::string& file);

}  // namespace tg::engine

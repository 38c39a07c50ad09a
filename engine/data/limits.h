// All bounds on data sets, in one place. Files are not trusted until they have been checked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tg::engine {

inline constexpr std::size_t kMaxSamples = std::size_t{1} << 24;
inline constexpr std::size_t kMaxClasses = 65'535;  // labels are 16 bits
static_assert(kMaxClasses <= UINT16_MAX);

// Pictures. A decoding thread holds at most the file, the pixels, and two bytes for each value of a progressive JPEG.
// The largest picture of ImageNet has 61 million pixels.
inline constexpr std::size_t kMaxPictureFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxPicturePixels = std::size_t{1} << 26;
inline constexpr int kMaxPictureSide = 65'535;
inline constexpr int kMaxJpegScans = 200;  // real files have about ten; each scan costs a pass over all pixels
inline constexpr std::size_t kMaxPngChunkBytes = std::size_t{8} << 20;
inline constexpr int kMaxInputSide = 1024;  // pixels of a side of a model's input
static_assert(std::size_t{kMaxInputSide} * kMaxInputSide <= kMaxPicturePixels);

// Folders.
inline constexpr int kMaxFolderDepth = 8;                           // folder levels below a class
inline constexpr std::size_t kMaxListBytes = std::size_t{1} << 30;  // size of train.txt, test.txt or classes.txt
inline constexpr std::size_t kMaxDamagedInARow = 100;               // files skipped for one sample
inline constexpr std::size_t kMaxDamagedNamed = 20;                 // files named; the rest are only counted
inline constexpr std::size_t kMaxMeasuredPictures = 2000;           // pictures decoded to measure mean and deviation

// Arrays (.npy, IDX).
inline constexpr std::size_t kMaxArrayRank = 4;
inline constexpr std::size_t kMaxArrayBytes = std::size_t{1} << 36;
inline constexpr std::size_t kMaxSampleElements = std::size_t{1} << 24;
inline constexpr std::size_t kMaxNpyHeaderBytes = std::size_t{1} << 16;
inline constexpr std::size_t kArrayPieceBytes = std::size_t{1} << 20;  // read at a time; a multiple of element sizes
static_assert(kArrayPieceBytes % 8 == 0);

// Training.
inline constexpr std::uint64_t kPrefetchBatches = 2;  // batches that exist at a time: one in training, one being filled
static_assert(kPrefetchBatches >= 2);

}  // namespace tg::engine

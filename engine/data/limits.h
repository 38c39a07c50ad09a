// All bounds on data sets, in one place. Files are not trusted until they have been checked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tg::engine {

inline constexpr std::size_t kMostSamples = std::size_t{1} << 24;
inline constexpr std::size_t kMostClasses = 65'535;  // labels are 16 bits
static_assert(kMostClasses <= UINT16_MAX);

// Pictures. A decoding thread holds at most the file, the pixels, and two bytes for each value of a progressive JPEG.
// The largest picture of ImageNet has 61 million pixels.
inline constexpr std::size_t kMostPictureFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostPicturePixels = std::size_t{1} << 26;
inline constexpr int kMostPictureSide = 65'535;
inline constexpr int kMostJpegScans = 200;  // real files have about ten; each scan costs a pass over all pixels
inline constexpr std::size_t kMostPngChunkBytes = std::size_t{8} << 20;
inline constexpr int kMostInputSide = 1024;  // pixels of a side of a model's input
static_assert(std::size_t{kMostInputSide} * kMostInputSide <= kMostPicturePixels);

// Folders.
inline constexpr int kMostFolderDepth = 8;                           // folder levels below a class
inline constexpr std::size_t kMostListBytes = std::size_t{1} << 30;  // size of train.txt, test.txt or classes.txt
inline constexpr std::size_t kMostDamagedInARow = 100;               // files skipped for one sample
inline constexpr std::size_t kMostDamagedNamed = 20;                 // files named; the rest are only counted
inline constexpr std::size_t kMostLookedAt = 200;                    // pictures, to foresee what a run would take
inline constexpr std::size_t kMostMeasuredPictures = 2000;           // pictures decoded to measure mean and deviation

// Arrays (.npy, IDX).
inline constexpr std::size_t kMostArrayRank = 4;
inline constexpr std::size_t kMostArrayBytes = std::size_t{1} << 36;
inline constexpr std::size_t kMostSampleElements = std::size_t{1} << 24;
inline constexpr std::size_t kMostNpyHeaderBytes = std::size_t{1} << 16;
inline constexpr std::size_t kArrayPieceBytes = std::size_t{1} << 20;  // read at a time; a multiple of element sizes
static_assert(kArrayPieceBytes % 8 == 0);

// Training.
inline constexpr std::uint64_t kPrefetchBatches = 2;  // batches that exist at a time: one in training, one being filled
static_assert(kPrefetchBatches >= 2);

}  // namespace tg::engine

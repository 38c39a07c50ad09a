// Every bound of what a data set may be, in one place. Files are hostile until they are read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tg::engine {

inline constexpr std::size_t kMostSamples = std::size_t{1} << 24;
inline constexpr std::size_t kMostClasses = 65'535;  // labels are 16 bits
static_assert(kMostClasses <= UINT16_MAX);

// Pictures. What a decoding thread holds at most: the file, the pixels, and of a progressive JPEG two bytes for each
// value. The largest picture of ImageNet has 61 million pixels.
inline constexpr std::size_t kMostPictureFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostPicturePixels = std::size_t{1} << 26;
inline constexpr int kMostPictureSide = 65'535;
inline constexpr int kMostJpegScans = 200;  // a real one has ten or so; each costs a pass over all pixels
inline constexpr std::size_t kMostPngChunkBytes = std::size_t{8} << 20;
inline constexpr int kMostInputSide = 1024;  // pixels, of what a model takes
static_assert(std::size_t{kMostInputSide} * kMostInputSide <= kMostPicturePixels);

// Folders.
inline constexpr int kMostFolderDepth = 8;                           // below a class
inline constexpr std::size_t kMostListBytes = std::size_t{1} << 30;  // of train.txt, test.txt, classes.txt
inline constexpr std::size_t kMostDamagedInARow = 100;               // skipped for one sample
inline constexpr std::size_t kMostDamagedNamed = 20;                 // the rest is counted
inline constexpr std::size_t kMostMeasuredPictures = 2000;           // decoded to measure mean and deviation

// Arrays (.npy, IDX).
inline constexpr std::size_t kMostArrayRank = 4;
inline constexpr std::size_t kMostArrayBytes = std::size_t{1} << 36;
inline constexpr std::size_t kMostSampleElements = std::size_t{1} << 24;
inline constexpr std::size_t kMostNpyHeaderBytes = std::size_t{1} << 16;
inline constexpr std::size_t kArrayPieceBytes = std::size_t{1} << 20;  // read at a time; a whole number of any element
static_assert(kArrayPieceBytes % 8 == 0);

// Training.
inline constexpr std::uint64_t kPrefetchBatches = 2;  // that exist at a time: one is trained on, one is filled
static_assert(kPrefetchBatches >= 2);

}  // namespace tg::engine

// The exchange layout: how a model's flat arrays are cut into buckets and chunks, and which member owns each chunk.
//
//   flat array   | conv1.w | conv1.b | conv2.w | conv2.b |        fc1.w        | fc1.b | fc2.w | fc2.b |
//   buckets      |------------- bucket 1 --------------|------------------- bucket 0 ------------------|
//   chunks       |---------------- 4 ------------------|----0----|----1----|----2----|--------3--------|
//
// A bucket is a run of consecutive segments, numbered in backward order (bucket 0 is complete first). A chunk is a
// slice of a bucket whose ends are multiples of kernels::kBlock; all its segments travel in the same format. A frozen
// segment lies in a bucket beside others, but in no chunk. Every member computes the same layout from the same inputs.
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/segment.h"
#include "schema/choices.h"
#include "schema/frame/frame.h"
#include "schema/limits.h"
#include "schema/place.h"

namespace tg::daemon {

// The part of a chunk that lies in one segment.
struct ChunkPart {
  std::size_t segment = 0;
  std::size_t begin = 0;             // flat element
  std::size_t count = 0;             // elements, multiple of kBlock
  std::size_t first_in_segment = 0;  // index of `begin` within the segment
};

using schema::GradientFormat;

struct ChunkLayout {
  std::size_t bucket = 0;
  std::size_t begin = 0, end = 0;  // flat elements
  GradientFormat format = GradientFormat::kTernary;
  Rank owner;  // the member that sums it in the sharded exchange
  std::vector<ChunkPart> parts;
  std::vector<std::size_t> runs;  // sizes of the parts; each has a coding probability
  std::size_t size() const { return end - begin; }
  bool coded() const { return format == GradientFormat::kTernary; }
};

struct BucketLayout {
  std::size_t first_segment = 0, last_segment = 0;  // [first, last)
  std::size_t first_chunk = 0, last_chunk = 0;      // [first, last)
  std::vector<std::size_t> coded_segments;  // ascending, none frozen; a scaler each in the bucket's scaler frame
};

struct Layout {
  std::vector<BucketLayout> buckets;
  std::vector<ChunkLayout> chunks;
  std::vector<std::size_t> bucket_of_segment;
  std::vector<GradientFormat> formats;  // by segment
  schema::ExchangeKind exchange = schema::ExchangeKind::kDirect;
  schema::Coding coding = schema::Coding::kRaw;
  bool shared_scalers = true;  // eq. (4); else each member keeps its own and sums are floats, in rank order
  std::size_t members = 1;
  std::size_t longest_chunk = 0;  // elements
  // Credit: payload bytes that may be in flight to one peer, for totals schema::kMaxWindowsOfTotals times as many
  // (transfers.h); a chunk for each thread may overshoot it.
  std::size_t window_bytes = 0;
  // After this many bytes a receiver says what it has taken, so that a window does not stay full needlessly.
  std::size_t credit_every_bytes() const { return window_bytes / 4; }
  bool coded(std::size_t segment) const { return formats[segment] == GradientFormat::kTernary; }
  bool sharded() const { return exchange == schema::ExchangeKind::kSharded && members > 1; }
};

struct LayoutOptions {
  std::size_t members = 1;
  schema::ExchangeKind exchange = schema::ExchangeKind::kDirect;
  schema::Coding coding = schema::Coding::kRaw;
  GradientFormat gradients = GradientFormat::kTernary;
  GradientFormat last_layer = GradientFormat::kTernary;  // where gradients is kTernary
  bool shared_scalers = true;
  std::size_t window_bytes = schema::kMaxWindowBytes;
  std::size_t most_chunk_parameters = schema::kLargeChunkParameters;
  std::size_t min_ternary_size = 1;   // elements; smaller segments travel as float32
  std::size_t bucket_parameters = 0;  // 0 = kDefaultBucketParameters
  std::size_t chunk_parameters = 0;   // 0 = from bucket size, members and the payload bound
};

inline constexpr std::size_t kDefaultBucketParameters = 256 * 1024;
inline constexpr std::size_t kMinChunkParameters = 64 * 1024;  // below this a frame costs more than it overlaps

// On a slow link a large model is cut into this many chunks. Smaller ones would end the step sooner, but cost more in
// frames than that gains.
inline constexpr std::size_t kChunksOfAModel = 480;
inline constexpr std::size_t kChunksOfAnOwner = 120;  // with more than four members, for the same reason

// The layout is direct, whatever the options say, if an owner has nothing to sum: with one member, or if members keep
// their own scalers.
Layout make_layout(const engine::SegmentTable& segments, const LayoutOptions& options);

// The most bytes that a step's frames may occupy on a member at once: those held until they can be summed, and those
// in flight to and from every peer.
std::size_t exchange_bytes(const Layout& layout);

}  // namespace tg::daemon

#include "daemon/exchange/layout.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/kernels.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

static_assert(kernels::kMaxMembers == static_cast<int>(schema::kMaxMembers));
static_assert(kernels::codes_bound(schema::kLargeChunkParameters) <= schema::kMaxChunkPayloadBytes,
              "the codes of a large chunk fit a frame, the kernels' slack included");
static_assert(schema::kMaxChunkPayloadBytes * 8 / (schema::kMaxMembers + 2) > kernels::kBlock,
              "the sums of any number of members fit a frame, a block at least");
static_assert(schema::kLargeChunkParameters % kernels::kBlock == 0 && kMinChunkParameters % kernels::kBlock == 0);
static_assert(kMinChunkParameters <= schema::kLargeChunkParameters);

std::size_t round_down(std::size_t elements) { return elements / kernels::kBlock * kernels::kBlock; }

// The most elements whose payload fits a frame, whatever the values: sums of N codes may need N+1 bits each.
std::size_t most_elements(GradientFormat format, std::size_t members) {
  if (format != GradientFormat::kTernary) return round_down(schema::kMaxChunkPayloadBytes / sizeof(float));
  std::size_t elements =
      round_down(std::min(schema::kMaxChunkPayloadBytes * 8 / (members + 2), schema::kLargeChunkParameters));
  while (kernels::sums_bound(elements, static_cast<int>(members)) > schema::kMaxChunkPayloadBytes)
    elements -= kernels::kBlock;
  return elements;
}

std::size_t share_of(std::size_t model_elements, std::size_t chunks) {
  return std::min(model_elements / chunks, schema::kLargeChunkParameters);
}

// The most elements of a chunk. On a slow link a step has many chunks, so that the last one's travel is short beside
// the step. A large model has many chunks anyway.
std::size_t most_for_link(std::size_t model_elements, const LayoutOptions& options, bool sharded) {
  const std::size_t chunks = sharded ? std::max(kChunksOfAModel, kChunksOfAnOwner * options.members) : kChunksOfAModel;
  return kernels::padded(std::max(share_of(model_elements, chunks), options.most_chunk_parameters));
}

std::size_t chunk_size(std::size_t run_elements, GradientFormat format, std::size_t most_here,
                       const LayoutOptions& options) {
  const std::size_t most = most_elements(format, options.members);
  if (options.chunk_parameters != 0)
    return std::clamp(kernels::padded(options.chunk_parameters), kernels::kBlock, most);
  const std::size_t least = std::min(kMinChunkParameters, most_here);
  const std::size_t share = kernels::padded((run_elements + options.members - 1) / options.members);
  std::size_t count = (run_elements - 1) / std::min({std::max(share, least), most_here, most}) + 1;
  // Every member owns as many as every other.
  if (count > options.members) count = (count + options.members - 1) / options.members * options.members;
  return kernels::padded((run_elements + count - 1) / count);
}

// Cuts the segments [first, last), all of one format, into chunks.
void cut_run(const engine::SegmentTable& segments, std::size_t bucket, std::size_t first, std::size_t last,
             const LayoutOptions& options, Layout& layout) {
  const std::size_t begin = segments[first].offset;
  const std::size_t end = segments[last - 1].offset + segments[last - 1].padded_count();
  const GradientFormat format = layout.formats[first];
  const std::size_t size =
      chunk_size(end - begin, format, most_for_link(segments.padded_count(), options, layout.sharded()), options);
  std::size_t segment = first;
  for (std::size_t at = begin; at < end; at += size) {
    ChunkLayout chunk{bucket, at, std::min(at + size, end), format, Rank(layout.chunks.size() % options.members),
                      {},     {}};
    for (std::size_t part = at; part < chunk.end;) {
      while (segments[segment].offset + segments[segment].padded_count() <= part) ++segment;
      const std::size_t segment_end = segments[segment].offset + segments[segment].padded_count();
      const std::size_t part_end = std::min(segment_end, chunk.end);
      chunk.parts.push_back({segment, part, part_end - part, part - segments[segment].offset});
      chunk.runs.push_back(part_end - part);
      part = part_end;
    }
    layout.longest_chunk = std::max(layout.longest_chunk, chunk.size());
    layout.chunks.push_back(std::move(chunk));
  }
}

GradientFormat format_of(const engine::Segment& segment, const LayoutOptions& options) {
  if (options.gradients != GradientFormat::kTernary) return options.gradients;
  if (segment.element_count < options.min_ternary_size) return GradientFormat::kFloat32;
  return segment.last_layer ? options.last_layer : GradientFormat::kTernary;
}

// Room for one chunk on its way, one behind it, and a third for the time that credit takes to come back: coded sums
// have two to three bits per element. Between more than two members more would only make a queue in the switch's port
// to one of them, where the bytes of all peers meet. The port drops what it cannot hold, and the sender of what was
// dropped falls behind. The few float chunks of a ternary layout do not make the window wider, since a chunk may
// overshoot it. Between more than four members a large model's chunks are smaller than the window (from eight on, half
// of it), since a total waits until no peer's window is full.
std::size_t least_window(const Layout& layout, std::size_t model_elements) {
  std::size_t ternary = 0, floats = 0;
  for (const ChunkLayout& chunk : layout.chunks) {
    const std::size_t float_bytes = chunk.format == GradientFormat::kFloat16 ? 2 : sizeof(float);
    std::size_t& most = chunk.coded() ? ternary : floats;
    most = std::max(most, chunk.coded() ? chunk.size() : chunk.size() * float_bytes);
  }
  const std::size_t longest = ternary > 0 ? ternary : floats;
  if (layout.members <= 2) return 2 * longest;
  if (ternary == 0 || !layout.sharded() || layout.members <= 4) return longest;
  return std::max(longest, share_of(model_elements, std::max(kChunksOfAModel, kChunksOfAnOwner / 2 * layout.members)));
}

}  // namespace

Layout make_layout(const engine::SegmentTable& segments, const LayoutOptions& options) {
  TG_CHECK(segments.size() > 0 && options.members > 0);
  Layout layout;
  const bool alone = options.members == 1 || !options.shared_scalers;
  layout.exchange = alone ? schema::ExchangeKind::kDirect : options.exchange;
  layout.coding = options.coding;
  layout.shared_scalers = options.shared_scalers;
  layout.members = options.members;
  layout.bucket_of_segment.resize(segments.size());
  for (const engine::Segment& segment : segments.segments()) layout.formats.push_back(format_of(segment, options));
  const std::size_t bucket_parameters =
      options.bucket_parameters ? options.bucket_parameters : kDefaultBucketParameters;
  std::size_t first_trained = 0;  // those before it join the bucket that is ready last: each has something to send
  while (segments[first_trained].frozen) ++first_trained;
  for (std::size_t last = segments.size(); last > 0;) {
    std::size_t first = last, elements = 0;
    while (first > 0 && (elements < bucket_parameters || first <= first_trained)) {
      --first;
      if (!segments[first].frozen) elements += segments[first].padded_count();
    }
    const std::size_t bucket = layout.buckets.size();
    BucketLayout entry{first, last, layout.chunks.size(), 0, {}};
    for (std::size_t run = first; run < last;) {
      std::size_t run_end = run;
      const auto alike = [&](std::size_t s) {
        return layout.formats[s] == layout.formats[run] && segments[s].frozen == segments[run].frozen;
      };
      while (run_end < last && alike(run_end)) ++run_end;
      if (!segments[run].frozen) cut_run(segments, bucket, run, run_end, options, layout);
      run = run_end;
    }
    for (std::size_t s = first; s < last; ++s) {
      layout.bucket_of_segment[s] = bucket;
      if (layout.coded(s) && !segments[s].frozen) entry.coded_segments.push_back(s);
    }
    entry.last_chunk = layout.chunks.size();
    layout.buckets.push_back(std::move(entry));
    last = first;
  }
  layout.window_bytes = std::max(options.window_bytes, least_window(layout, segments.padded_count()));
  return layout;
}

std::size_t exchange_bytes(const Layout& layout) {
  const std::size_t peers = layout.members - 1;
  // Contributions as large as they get, of the chunks that a member sums: all, or its own.
  std::vector<std::size_t> held_by(layout.members);
  for (const ChunkLayout& chunk : layout.chunks) {
    const std::size_t float_bytes = chunk.format == GradientFormat::kFloat16 ? 2 : sizeof(float);
    held_by[layout.sharded() ? chunk.owner.index() : 0] +=
        peers * (chunk.coded() ? kernels::codes_bound(chunk.size()) : chunk.size() * float_bytes);
  }
  const std::size_t held = *std::max_element(held_by.begin(), held_by.end());
  // A frame that came is as large as its payload; the block of one that goes up to kMaxBlockPerFrame times as large,
  // or small (kSmallBlockBytes): of those there are too few to count.
  // To each peer a window of contributions, to any kMaxWindowsOfTotals of totals, and a chunk beyond: a peer
  // that lags may be owed that by each member. A total is one block for all peers: those in flight are no more than
  // the slowest peer is owed.
  const std::size_t of_totals = schema::kMaxWindowsOfTotals;
  const std::size_t to_one = layout.sharded() ? of_totals : 1, to_all = layout.sharded() ? peers + of_totals : peers;
  const std::size_t beyond = schema::kMaxChunkPayloadBytes;
  const std::size_t coming = peers * (to_one * layout.window_bytes + beyond);
  const std::size_t going =
      schema::kMaxBlockPerFrame * to_all * layout.window_bytes + (layout.sharded() ? peers + 1 : peers) * beyond;
  return held + coming + going;
}

}  // namespace tg::daemon

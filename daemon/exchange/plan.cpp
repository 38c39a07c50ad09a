#include "daemon/exchange/plan.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/kernels.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

static_assert(kernels::kMostMembers == static_cast<int>(schema::kMostMembers));

std::size_t round_down(std::size_t elements) { return elements / kernels::kBlock * kernels::kBlock; }

// The most elements whose payload fits a frame, whatever the values: sums of N codes may need N+1 bits each.
std::size_t most_elements(bool ternary, std::size_t members) {
  if (!ternary) return round_down(schema::kMostChunkPayloadBytes / sizeof(float));
  std::size_t elements = round_down(schema::kMostChunkPayloadBytes * 8 / (members + 2));
  while (kernels::sums_bound(elements, static_cast<int>(members)) > schema::kMostChunkPayloadBytes)
    elements -= kernels::kBlock;
  return elements;
}

std::size_t chunk_size(std::size_t run_elements, bool ternary, const PlanOptions& options) {
  const std::size_t most = most_elements(ternary, options.members);
  if (options.chunk_parameters != 0)
    return std::clamp(kernels::padded(options.chunk_parameters), kernels::kBlock, most);
  const std::size_t share = kernels::padded((run_elements + options.members - 1) / options.members);
  std::size_t count = (run_elements - 1) / std::min(std::max(share, kLeastChunkParameters), most) + 1;
  // Every member owns as many as every other.
  if (count > options.members) count = (count + options.members - 1) / options.members * options.members;
  return kernels::padded((run_elements + count - 1) / count);
}

// Cuts the segments [first, last), all of one format, into chunks.
void cut_run(const engine::SegmentTable& segments, std::size_t bucket, std::size_t first, std::size_t last,
             const PlanOptions& options, Plan& plan) {
  const std::size_t begin = segments[first].offset;
  const std::size_t end = segments[last - 1].offset + segments[last - 1].padded_count();
  const bool ternary = plan.ternary[first];
  const std::size_t size = chunk_size(end - begin, ternary, options);
  std::size_t segment = first;
  for (std::size_t at = begin; at < end; at += size) {
    ChunkPlan chunk{bucket, at, std::min(at + size, end), ternary, plan.chunks.size() % options.members, {}};
    for (std::size_t part = at; part < chunk.end;) {
      while (segments[segment].offset + segments[segment].padded_count() <= part) ++segment;
      const std::size_t segment_end = segments[segment].offset + segments[segment].padded_count();
      const std::size_t part_end = std::min(segment_end, chunk.end);
      chunk.parts.push_back({segment, part, part_end - part, part - segments[segment].offset});
      part = part_end;
    }
    plan.chunks.push_back(std::move(chunk));
  }
}

}  // namespace

Plan make_plan(const engine::SegmentTable& segments, const PlanOptions& options) {
  TG_CHECK(segments.size() > 0 && options.members > 0);
  Plan plan;
  plan.exchange = options.exchange;
  plan.members = options.members;
  plan.bucket_of_segment.resize(segments.size());
  for (const engine::Segment& segment : segments.segments()) {
    const bool last_layer_floats = segment.last_layer && !options.ternary_last_layer;
    plan.ternary.push_back(options.ternary && !last_layer_floats && segment.element_count >= options.min_ternary_size);
  }
  const std::size_t bucket_parameters =
      options.bucket_parameters ? options.bucket_parameters : kDefaultBucketParameters;
  for (std::size_t last = segments.size(); last > 0;) {
    std::size_t first = last, elements = 0;
    while (first > 0 && elements < bucket_parameters) elements += segments[--first].padded_count();
    const std::size_t bucket = plan.buckets.size();
    BucketPlan entry{first, last, plan.chunks.size(), 0, {}};
    for (std::size_t run = first; run < last;) {
      std::size_t run_end = run;
      while (run_end < last && plan.ternary[run_end] == plan.ternary[run]) ++run_end;
      cut_run(segments, bucket, run, run_end, options, plan);
      run = run_end;
    }
    for (std::size_t s = first; s < last; ++s) {
      plan.bucket_of_segment[s] = bucket;
      if (plan.ternary[s]) entry.ternary_segments.push_back(s);
    }
    entry.last_chunk = plan.chunks.size();
    plan.buckets.push_back(std::move(entry));
    last = first;
  }
  return plan;
}

PlanTraffic predict_traffic(const Plan& plan, double zeros) {
  const double members = static_cast<double>(plan.members);
  // Raw payloads: the mask, a sign per nonzero; sums of N independent codes have about N times as many nonzeros.
  const double code_bits = 1 + (1 - zeros);
  double none = 1;  // probability that a sum has no nonzero addend
  for (std::size_t n = 0; n < plan.members; ++n) none *= zeros;
  const double sum_bits = 1 + 2 * (1 - none);
  PlanTraffic traffic;
  for (const ChunkPlan& chunk : plan.chunks) {
    const double elements = static_cast<double>(chunk.size());
    const double contribution = chunk.ternary ? code_bits : 32;
    const double total = chunk.ternary ? sum_bits : 32;
    const double per_member =
        plan.sharded() ? (members - 1) / members * (contribution + total) : (members - 1) * contribution;
    traffic.sent_bits += elements * per_member;
  }
  return traffic;
}

}  // namespace tg::daemon

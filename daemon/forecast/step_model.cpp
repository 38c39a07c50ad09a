#include "daemon/forecast/step_model.h"

#include <algorithm>
#include <numeric>

#include "daemon/exchange/credit_book.h"
#include "daemon/forecast/code_bits.h"
#include "engine/graph/flops.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

constexpr double kForward = 1.0 / 3;  // of the computing
constexpr double kHeadBytes = schema::kChunkHeadBytes + schema::kMessageHeadBytes;
constexpr double kDirectTrips = 2;   // scalers; the last codes
constexpr double kShardedTrips = 3;  // scalers; the last codes; their sums

// A layout of one bucket, so that the functions that say what a layout costs can say it of a bucket.
Layout only(const Layout& layout, std::size_t bucket) {
  Layout part;  // of its chunks only: copying all chunks for every bucket takes long where a link is slow
  part.exchange = layout.exchange;
  part.coding = layout.coding;
  part.members = layout.members;
  part.chunks.assign(layout.chunks.begin() + static_cast<std::ptrdiff_t>(layout.buckets[bucket].first_chunk),
                     layout.chunks.begin() + static_cast<std::ptrdiff_t>(layout.buckets[bucket].last_chunk));
  return part;
}

double elements_of(const Layout& layout) {
  return std::accumulate(layout.chunks.begin(), layout.chunks.end(), 0.0,
                         [](double sum, const ChunkLayout& chunk) { return sum + static_cast<double>(chunk.size()); });
}

// Payload frames that a member sends, and as many that it takes.
double payloads_of(const Layout& part) {
  const double others = static_cast<double>(part.members - 1), chunks = static_cast<double>(part.chunks.size());
  return part.sharded() ? 2 * chunks * others / static_cast<double>(part.members) : chunks * others;
}

// Credit frames that a member sends in a step, and as many that it takes.
double credits_of(const Layout& layout, double bits) {
  const double others = static_cast<double>(layout.members - 1);
  return others * expected_credits(payloads_of(layout) / others, bits / 8 / others, layout.credit_every_bytes());
}

// From the arrival of the last payloads to the commit. All owners' last chunks come at the same time, each is decoded
// and applied in its turn, by as many threads as there are.
double last_processor_seconds(const Layout& layout, const KernelCosts& costs, double elements, double crew) {
  const auto coding = static_cast<std::size_t>(layout.coding);
  const double others = static_cast<double>(layout.members - 1);
  if (!layout.sharded()) return elements * (others * costs.codes[coding] + costs.apply);
  const double round = std::min(static_cast<double>(layout.chunks.size()), others + 1);  // chunks that end together
  return elements * (costs.codes[coding] + costs.sums[coding] +
                     ((round - 1) * costs.sums[coding] + round * costs.apply) / std::min(crew, round));
}

void fill_ready(StepModel& step, const std::vector<double>& shares) {
  for (std::size_t b = 0; b < step.buckets.size(); ++b) step.buckets[b].ready = shares[b] * step.compute;
}

StepModel start_of(const Surroundings& where, const Computing& computing) {
  StepModel step;
  step.cores = where.cores;
  step.crew = crew_speed_up(computing.workers);
  step.compute = computing.seconds;
  step.compute_processor = computing.processor;
  return step;
}

}  // namespace

double kernel_seconds(const Layout& layout, const KernelCosts& costs) {
  const auto coding = static_cast<std::size_t>(layout.coding);
  const double others = static_cast<double>(layout.members - 1), members = static_cast<double>(layout.members);
  const double codes = layout.sharded() ? 2 * others / members : members;  // of an element: its own and those of others
  const double sums = layout.sharded() ? 1 : 0;                            // coded by its owner, decoded by others
  return elements_of(layout) *
         (costs.ternarize + codes * costs.codes[coding] + sums * costs.sums[coding] + costs.apply);
}

double StepModel::step_seconds(double trip_seconds) const {
  double thread = 0, link = 0;
  for (const Bucket& bucket : buckets) {
    thread = std::max(thread, bucket.ready) + bucket.thread / speed();
    link = std::max(link, bucket.ready + bucket.lead / share()) + bucket.wire;
  }
  const double processors = (compute_processor + processor()) / cores * (cores < 1 ? kSharedCore : 1);
  const double longest = std::max({thread + last_wire, link + last_cpu / share(), processors, compute});
  return longest + trips * trip_seconds / share();
}

std::vector<double> ready_shares(const engine::Model& model, const Layout& layout) {
  const std::vector<double> work = multiply_adds(model);
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<double> shares;
  double done = 0;
  for (const BucketLayout& bucket : layout.buckets) {
    if (all > 0)
      for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s) done += work[s];
    shares.push_back(all > 0 ? kForward + (1 - kForward) * done / all : 0);
  }
  return shares;
}

StepModel model_step(const Layout& layout, const engine::Model& model, const Machine& machine,
                     const Surroundings& where, const Computing& computing) {
  StepModel step = start_of(where, computing);
  if (layout.members < 2) return step;
  const KernelCosts costs = costs_at(machine.kernels, layout.members, where.zeros);
  const auto coding = static_cast<std::size_t>(layout.coding);
  const double rate = where.payload_mbps * 1e6, others = static_cast<double>(layout.members - 1);
  const double all_bits = sent_bits(layout, where.zeros), credits = credits_of(layout, all_bits);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const Layout part = only(layout, b);
    const double payload_bits = sent_bits(part, where.zeros);
    const double scalers = others;  // a frame of scalers to each peer
    const double frames = payloads_of(part) + scalers + credits * payload_bits / all_bits;
    // In the first bucket's step frame.
    const double statistics = b > 0 ? 0 : static_cast<double>(model.statistics.parameter_count()) * others;
    const double bits = payload_bits + 32 * statistics + frames * kHeadBytes * 8;
    const double first = static_cast<double>(part.chunks.front().size());
    StepModel::Bucket bucket;
    bucket.wire = bits / rate;
    // Statistics, of the whole bucket, are half of ternarizing.
    bucket.lead = (elements_of(part) + first) * costs.ternarize / 2 + first * costs.codes[coding];
    bucket.thread = kernel_seconds(part, costs);
    step.buckets.push_back(bucket);
    step.sent_bits += bits;
    step.kernels += bucket.thread;
    step.network += 2 * (payload_bits / 8 * kByteSeconds + frames * kFrameSeconds);  // sent and taken
  }
  fill_ready(step, ready_shares(model, layout));
  const Layout end = only(layout, layout.buckets.size() - 1);
  const double last = static_cast<double>(end.chunks.back().size());
  const CodeBits bits = expected_bits(layout.coding, where.zeros, layout.members);
  step.last_cpu = last_processor_seconds(end, costs, last, step.crew);
  step.last_wire = last * (layout.sharded() ? bits.sums : bits.codes) * static_cast<double>(layout.members - 1) / rate;
  step.last_wire = std::min(step.last_wire, step.buckets.back().wire);
  step.trips = layout.sharded() ? kShardedTrips : kDirectTrips;
  return step;
}

StepModel model_ring(const Layout& layout, const engine::Model& model, const Surroundings& where,
                     const Computing& computing) {
  StepModel step = start_of(where, computing);
  if (layout.members < 2) return step;
  const double members = static_cast<double>(layout.members);
  for (const BucketLayout& bucket : layout.buckets) {
    double parameters = 0;
    for (std::size_t s = bucket.first_segment; s < bucket.last_segment; ++s)
      parameters += static_cast<double>(model.segments[s].element_count);
    const double bits = 2 * (members - 1) / members * 32 * parameters;
    step.buckets.push_back({0, bits / (where.payload_mbps * 1e6), 0, 0});
    step.sent_bits += bits;
  }
  fill_ready(step, ready_shares(model, layout));
  return step;
}

}  // namespace tg::daemon

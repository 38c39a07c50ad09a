#include "daemon/forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "daemon/forecast/code_bits.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "daemon/step/worker.h"
#include "engine/graph/flops.h"
#include "kernels/base/check.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::ExchangeKind;

// Seconds per element of the exchange's kernels on one thread of an AVX-512 server of 2020 in a busy hour; by coding
// (raw, entropy) where there are two. They are the same within a fifth from 0.5 M to 25 M elements.
constexpr double kTernarize = 0.65e-9;          // statistics and codes of a gradient
constexpr double kCodes[] = {0.1e-9, 0.19e-9};  // a member's codes, coded, or decoded and added up
constexpr double kSums[] = {0.4e-9, 0.55e-9};   // for eight members with 92 % zeros, coded or decoded
constexpr double kApply = 1.1e-9;
// Coding sums takes as long as they have planes: of N members with a share z of zeros min(N, kReach * sqrt(N (1 - z))),
// the largest sum that half a million of them hold.
constexpr double kReach = 6;
// Each further thread of an exchange adds this share of the first one's speed: they share a memory.
constexpr double kFurtherThread = 0.9;
// Processor time of TCP and ZeroMQ for a byte and for a frame, sent or taken.
constexpr double kByteSeconds = 0.9e-9;
constexpr double kFrameSeconds = 22e-6;
constexpr double kTripSeconds = 75e-6;  // a frame to a peer and its handling there
constexpr double kHeadBytes = schema::kChunkHeadBytes + schema::kMessageHeadBytes;
constexpr double kForward = 1.0 / 3;  // share of the computing time; backward is the rest, each layer by its operations

double planes(double members, double zeros) {
  return std::clamp(kReach * std::sqrt(members * (1 - zeros)), 1.0, std::max(members, 1.0));
}

// Processor seconds of the kernels for an element of a gradient: its own codes and those of others, and where it has an
// owner, the sum.
double element_seconds(const Layout& layout, double zeros) {
  const auto coding = static_cast<std::size_t>(layout.coding);
  const double members = static_cast<double>(layout.members);
  if (!layout.sharded()) return kTernarize + members * kCodes[coding] + kApply;
  const double sums = kSums[coding] * planes(members, zeros) / planes(8, 0.92);
  return kTernarize + 2 * (members - 1) / members * kCodes[coding] + sums + kApply;
}

// Bits that a member sends for an element, mean over the members.
double element_bits(const Layout& layout, const ChunkLayout& chunk, const CodeBits& ternary) {
  const double others = static_cast<double>(layout.members - 1), members = static_cast<double>(layout.members);
  const double plain = chunk.format == GradientFormat::kFloat16 ? 16 : 32;
  const double codes = chunk.coded() ? ternary.codes : plain, sums = chunk.coded() ? ternary.sums : plain;
  return layout.sharded() ? others / members * (codes + sums) : others * codes;
}

struct Batch {
  std::uint64_t global = 0, local = 0;
};
Batch batch_of(const StepQuestion& question) {
  const std::uint64_t nodes = question.nodes;
  const std::uint64_t global = std::max(schema::resolved_global_batch(question.job, nodes), nodes);
  return {global, question.own_samples > 0 ? question.own_samples : (global + nodes - 1) / nodes};
}

}  // namespace

double payload_mbps(const StepQuestion& question) {
  return question.job.link_mbps > 0 ? question.job.link_mbps * kPayloadShare : question.payload_mbps;
}

schema::Commit choice_of(const StepQuestion& question) {
  schema::Vote vote;
  vote.link_mbps = question.payload_mbps;
  vote.workers = static_cast<std::uint16_t>(workers_for(static_cast<std::uint64_t>(question.threads)));
  return choose_exchange(exchange_preference(question.job), std::vector<schema::Vote>(question.nodes, vote)).commit;
}

schema::Outcome predict_step(const StepQuestion& question, const schema::Commit& choice) {
  const Batch batch = batch_of(question);
  const double workers = static_cast<double>(workers_for(static_cast<std::uint64_t>(question.threads)));
  const double rate = payload_mbps(question) * 1e6, others = static_cast<double>(question.nodes - 1);
  schema::Outcome outcome;
  outcome.step = outcome.compute = question.sample_seconds * static_cast<double>(batch.local);
  if (question.nodes > 1) {
    TG_CHECK(rate > 0);
    // Beyond what a run allows the chunks are those of the largest run.
    Layout layout = make_layout(question.model.segments,
                                layout_options(question.job, std::min(question.nodes, schema::kMaxMembers), choice));
    layout.members = question.nodes;
    const CodeBits ternary = expected_bits(layout.coding, question.zeros, layout.members);
    const double kernel_seconds = element_seconds(layout, question.zeros);
    const double copies = layout.sharded() ? 2 * others / static_cast<double>(layout.members) : others;  // per chunk
    const std::vector<double> work = engine::multiply_adds(question.model);  // by segment; empty: cannot be computed
    const double all_work = std::accumulate(work.begin(), work.end(), 0.0);
    // They travel in a frame of the first bucket.
    double statistics = static_cast<double>(question.model.statistics.parameter_count());
    double done = 0, link = 0, coding = 0;
    for (const BucketLayout& bucket : layout.buckets) {
      double elements = 0, bits = std::exchange(statistics, 0) * 32 * others;
      double frames = others;  // scalers'
      for (std::size_t c = bucket.first_chunk; c < bucket.last_chunk; ++c) {
        const ChunkLayout& chunk = layout.chunks[c];
        elements += static_cast<double>(chunk.size());
        bits += static_cast<double>(chunk.size()) * element_bits(layout, chunk, ternary);
        frames += copies;
      }
      bits += frames * kHeadBytes * 8;
      for (std::size_t s = bucket.first_segment; s < bucket.last_segment && all_work > 0; ++s)
        done += work[s] / all_work;
      const double ready = outcome.compute * (kForward + (1 - kForward) * done);
      const double kernels = elements * kernel_seconds;
      link = std::max(link, ready) + bits / rate;
      coding = std::max(coding, ready) + kernels / (1 + kFurtherThread * (workers - 1));
      outcome.sent_bytes += bits / 8;
      outcome.wire += bits / rate;
      outcome.processor += kernels + 2 * (bits / 8 * kByteSeconds + frames * kFrameSeconds);  // sent and taken
    }
    const double computing = question.on_device ? 0 : outcome.compute * question.threads;
    const double processors = (computing + outcome.processor) / question.cores;
    outcome.step = std::max({outcome.compute, link, coding, processors}) + (layout.sharded() ? 3 : 2) * kTripSeconds;
  }
  outcome.samples_per_second = outcome.step > 0 ? static_cast<double>(batch.global) / outcome.step : 0;
  outcome.speed_up = outcome.samples_per_second * question.sample_seconds;
  return outcome;
}

schema::ForecastRow predict_row(const StepQuestion& question) {
  const Batch batch = batch_of(question);
  schema::Commit choice = choice_of(question);
  const auto step = [&](ExchangeKind exchange) {
    choice.exchange = exchange;
    return predict_step(question, choice);
  };
  return {question.nodes, batch.local, batch.global, step(ExchangeKind::kDirect), step(ExchangeKind::kSharded)};
}

Status check_plan(const schema::JobSpec& job, std::size_t nodes) {
  if (const Status valid = schema::validate_job(job, 0); !valid) return valid;
  const std::uint64_t batch = schema::resolved_global_batch(job, nodes);
  const std::string count = std::to_string(nodes);
  if (job.compute != schema::Compute::kReplay && batch < nodes)
    return Error{ErrorKind::kInvalidJob, "global-batch = " + std::to_string(batch) + " is less than " + count +
                                             " nodes: each needs a sample of every step; add --set global-batch=" +
                                             count + " or --set batch-per-node=1, or more"};
  return {};
}

Result<schema::ForecastReply> plan_reply(StepQuestion question) {
  schema::ForecastReply reply;
  reply.payload_mbps = payload_mbps(question);
  if (reply.payload_mbps <= 0)
    return Error{ErrorKind::kUsage,
                 "the link was not measured, for no peer answered; say its rate: plan --link 1Gbps, "
                 "or link-mbps = 1000 in the job"};
  const schema::Commit choice = choice_of(question);
  reply.model = question.model.name;
  reply.compute = question.job.compute;
  reply.parameters = question.model.segments.parameter_count();
  reply.line_mbps = question.job.link_mbps;
  reply.cores = question.cores;
  reply.exchange = to_word(choice.exchange);
  reply.coding = to_word(choice.coding);
  reply.asked = predict_row(question);
  question.own_samples = 0;
  for (question.nodes = 1; question.nodes <= schema::kMaxMembers; question.nodes *= 2)
    reply.table.push_back(predict_row(question));
  return reply;
}

}  // namespace tg::daemon

#include "daemon/step/job_layout.h"

#include <algorithm>

#include "daemon/step/replica.h"
#include "daemon/step/worker.h"

namespace tg::daemon {

CodeRule code_rule(const schema::JobSpec& job) {
  return {job.clip_sigma, job.scaler == schema::ScalerRecipe::kRepo, job.scaler_sharing == schema::ScalerSharing::kMax};
}

LayoutOptions layout_options(const schema::JobSpec& job, std::size_t members, const schema::Commit& choice) {
  LayoutOptions options;
  options.members = members;
  options.exchange = choice.exchange;
  options.coding = choice.coding;
  options.most_chunk_parameters = static_cast<std::size_t>(choice.chunk_parameters);
  options.window_bytes = static_cast<std::size_t>(choice.window_bytes);
  options.gradients = job.gradients;
  options.last_layer = schema::resolved_last_layer(job);
  options.shared_scalers = job.scaler_sharing == schema::ScalerSharing::kMax;
  options.min_ternary_size = static_cast<std::size_t>(job.min_ternary_size);
  options.bucket_parameters = static_cast<std::size_t>(job.bucket_parameters);
  options.chunk_parameters = static_cast<std::size_t>(job.chunk_parameters);
  return options;
}

Layouts layouts_of(const schema::JobSpec& job, const engine::SegmentTable& segments, std::size_t members,
                   const schema::Commit& choice) {
  LayoutOptions options = layout_options(job, members, choice);
  Layouts layouts{make_layout(segments, options), std::nullopt};
  if (job.float_steps == 0) return layouts;
  if (options.gradients == GradientFormat::kTernary) options.gradients = GradientFormat::kFloat32;
  layouts.of_float_steps = make_layout(segments, options);
  return layouts;
}

bool keeps_average(const schema::JobSpec& job) { return job.ema > 0; }
bool keeps_best(const schema::JobSpec& job) { return job.keep == schema::Keep::kBest; }

std::uint64_t space_bytes(const schema::JobSpec& job, const engine::Model& model) {
  return Replica::bytes(model, engine::slot_count(optimizer_of(job).kind), keeps_average(job)) -
         2 * whole_bytes(model.statistics.padded_count() * sizeof(float)) +
         whole_bytes(model.segments.padded_count() * sizeof(float));
}

namespace {

std::uint64_t best_bytes(const schema::JobSpec& job, const engine::Model& model) {
  return keeps_best(job) ? Replica::best_bytes(model) : 0;
}

// Bytes of a state in a file: without the rounding to whole pages that arrays take in memory.
std::uint64_t state_bytes(const schema::JobSpec& job, const engine::Model& model) {
  const auto models = static_cast<std::uint64_t>(keeps_best(job) ? 2 : 1);
  const auto others =
      static_cast<std::uint64_t>(engine::slot_count(optimizer_of(job).kind) + (keeps_average(job) ? 1 : 0));
  return (model.segments.padded_count() * (models + others) + model.statistics.padded_count() * models) * sizeof(float);
}

}  // namespace

std::uint64_t checkpoint_bytes(const schema::JobSpec& job, const engine::Model& model) {
  return job.checkpoint_every_ms == 0 ? 0 : state_bytes(job, model);
}

std::uint64_t disk_bytes(const schema::JobSpec& job, const engine::Model& model) {
  constexpr std::uint64_t kStates = 4, kModels = 2;
  return kStates * state_bytes(job, model) +
         kModels * (model.segments.padded_count() + model.statistics.padded_count()) * sizeof(float);
}

std::uint64_t member_bytes(const schema::JobSpec& job, const engine::Model& model, const Layouts& layouts,
                           std::size_t workers) {
  const engine::SegmentTable& segments = model.segments;
  // A helper's tasks, one in flight and one that waits, may each hold a frame and send one beyond the window.
  const std::uint64_t handed_out = 2 * helpers_of(workers) * 2 * schema::kMaxChunkPayloadBytes;
  const auto buffers = [&](const Layout& layout) {
    return SharedStep::bytes(segments, layout) + workers * Worker::bytes(layout) + exchange_bytes(layout) + handed_out;
  };
  const std::uint64_t queued =
      std::min<std::uint64_t>(schema::kMaxQueuedBytes, (layouts.layout.members - 1) * schema::kMaxQueuedBytesPerPeer);
  const std::uint64_t fixed = schema::kMaxIdlePoolBytes + kProgramBytes + queued;
  // In the members' step frames, of this step and the next.
  const std::uint64_t measured = 2 * layouts.layout.members * model.statistics.parameter_count() * sizeof(float);
  const std::uint64_t fed = job.join_limit_ms == 0 ? 0 : schema::kSnapshotWindowBytes + schema::kSnapshotChunkBytes;
  const int slots = engine::slot_count(optimizer_of(job).kind);
  return Replica::bytes(model, slots, keeps_average(job)) + best_bytes(job, model) +
         whole_bytes(segments.padded_count() * sizeof(float)) + measured + fixed + checkpoint_bytes(job, model) + fed +
         std::max(buffers(layouts.layout), layouts.of_float_steps ? buffers(*layouts.of_float_steps) : 0);
}

}  // namespace tg::daemon

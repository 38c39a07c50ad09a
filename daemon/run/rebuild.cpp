#include "daemon/run/rebuild.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "daemon/run/memory_check.h"
#include "daemon/step/job_layout.h"
#include "engine/dataset.h"
#include "engine/micro_batches.h"
#include "engine/replay/replay_engine.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kProbes = 3;              // timed forward + backward passes; the median counts
constexpr double kMaxProbe = 5.0;       // seconds; a longer pass is the only one
constexpr double kMinSplitProbe = 1.0;  // seconds of all passes together if they split the batch

// Two training batches, one of which is filled during training on the other, and one to evaluate.
std::uint64_t sample_bytes(const engine::Model& model, int batch) {
  return static_cast<std::uint64_t>(2 * batch + evaluation_samples(model.input)) * model.input.elements() *
         sizeof(float);
}

std::uint64_t min_bytes(const PreparationOptions& options, const LocalShare& part, const engine::Model& model,
                        bool on_device) {
  return min_run_bytes(options.job, model, part.weights.size(), options.threads) -
         (on_device ? space_bytes(options.job, model) : 0);
}

std::uint64_t reserve_of(const PreparationOptions& options, const LocalShare& part, const engine::Model& model) {
  return device_reserve(options.job, model, part.weights.size(), options.threads);
}

}  // namespace

// --- whether it fits ---

Status check_shares(const LocalShare& part) {
  if (part.global_batch >= part.weights.size() && part.share().count > 0) return {};
  return Error{ErrorKind::kInvalidJob, "the global batch of " + std::to_string(part.global_batch) +
                                           " is too small for " + std::to_string(part.weights.size()) +
                                           " members; raise global-batch"};
}

// No death makes a member's quota smaller, and its share is the quota rounded down or up.
Status check_later_shares(const LocalShare& part, const engine::Model& model) {
  const std::string one = engine::one_pixel_normalization(model);
  const auto sum = std::accumulate(part.weights.begin(), part.weights.end(), std::uint64_t{0});
  if (one.empty() || part.global_batch * *std::ranges::min_element(part.weights) / sum > 1) return {};
  return Error{ErrorKind::kInvalidJob,
               one + " normalizes over one value: one pixel large, and of " + std::to_string(part.global_batch) +
                   " samples a member may have one alone, now or after a death; make global-batch or the images "
                   "larger, or the weights more alike"};
}

Status check_whole_run(const PreparationOptions& options, const Prepared& prepared, const LocalShare& part,
                       const engine::ComputeDevice& compute) {
  const engine::Model& model = prepared.model;
  const bool on_device = compute.accelerator() != nullptr;
  const int batch = part.share().count;
  const std::uint64_t samples = on_device && !replays(options.job) ? sample_bytes(model, batch) : 0;
  if (Status fits = check_memory(min_bytes(options, part, model, on_device) + samples, 0, options.memory_bytes);
      !fits.ok())
    return fits;
  if (!on_device) return {};
  return check_device_memory(space_bytes(options.job, model), reserve_of(options, part, model), compute);
}

// --- its parts ---

namespace {

// The one place that chooses the engine. Its activations get the memory that everything else leaves. If the last part
// of a batch is shorter, its engine is made first, because the other engine also evaluates, with as many samples at
// once as the remaining memory allows. host_bytes: the limit of host memory for the whole run.
Result<std::unique_ptr<engine::Engine>> make_engine(const PreparationOptions& options, const LocalShare& part,
                                                    const engine::Model& model, int batch, std::uint64_t host_bytes,
                                                    const engine::ComputeDevice& compute,
                                                    const std::function<void()>& advance) {
  const schema::JobSpec& job = options.job;
  if (replays(job))
    return engine::make_replay_engine(
        model,
        {job.seed, static_cast<std::uint32_t>(part.self.index()), job.replay_zeros, job.replay_gradients.value_or("")},
        compute.space());
  const int least = engine::one_pixel_normalization(model).empty() ? 1 : 2;
  const engine::MicroBatchOptions micro_batches{batch, static_cast<int>(part.at_once(job.micro_batch)), least, advance};
  const engine::PartSizes sizes = engine::part_sizes(batch, micro_batches.micro_batch, least);
  const bool on_device = compute.accelerator() != nullptr;  // the state is already there
  const std::uint64_t others = (on_device ? reserve_of(options, part, model)
                                          : min_bytes(options, part, model, false) + sample_bytes(model, batch)) +
                               engine::micro_batch_bytes(model, batch, micro_batches.micro_batch);
  const std::uint64_t allowed = on_device ? compute.memory().free : host_bytes;
  const auto make = [&](int samples, int evaluated, std::uint64_t taken) {
    return compute.make_engine(model, {static_cast<int>(options.threads), samples, evaluated, job.seed,
                                       allowed > others + taken ? allowed - others - taken : 1, "", advance});
  };
  std::unique_ptr<engine::Engine> last;
  if (sizes.last > 0) {
    Result<std::unique_ptr<engine::Engine>> made = make(sizes.last, 1, 0);
    if (!made.ok()) return made;
    last = std::move(made).value();
  }
  Result<std::unique_ptr<engine::Engine>> engine =
      make(sizes.each, evaluation_samples(model.input), last ? last->activation_bytes() : 0);
  if (!engine.ok() || sizes.each == batch) return engine;
  return engine::make_micro_batches(std::move(engine).value(), compute.space(), micro_batches, std::move(last));
}

Status make_engine(const PreparationOptions& options, const LocalShare& part, std::uint64_t host_bytes,
                   const engine::ComputeDevice& compute, const std::function<void()>& advance, TrainingKit& kit) {
  Result<std::unique_ptr<engine::Engine>> engine =
      make_engine(options, part, kit.prepared->model, part.share().count, host_bytes, compute, advance);
  if (!engine.ok()) {
    const Error& error = engine.error();
    return Error{error.kind, error.message + (error.kind == ErrorKind::kRefused ? options.unsaved_note : "")};
  }
  kit.engine = std::move(engine).value();
  advance();
  return {};
}

// Returns the seconds of a forward + backward. This also makes the libraries compile their code before the first step,
// and the replay engine its gradients.
double probe(const PreparationOptions& options, const LocalShare& part, const Prepared& prepared,
             kernels::MemorySpace& space, TrainingKit& kit, const std::function<void()>& advance) {
  const engine::Share share = part.share();
  engine::Batch batch;
  batch.count = share.count;
  if (!replays(options.job)) {
    batch.images = space.allocate_host(static_cast<std::size_t>(share.count) * prepared.model.input.elements());
    engine::SampleStream stream(options.job.seed, prepared.data->train.count());
    engine::fill_training_batch(*prepared.data, prepared.recipe, stream, options.job.seed, share.first, batch, advance);
  }
  const auto advanced = [&](std::size_t, std::size_t) { advance(); };
  const bool splits = options.job.split == schema::Split::kSpeed && !replays(options.job) && !options.start;
  std::vector<double> seconds;
  double total_seconds = 0;
  for (int i = 0; i <= kProbes || (splits && total_seconds < kMinSplitProbe); ++i) {
    const Clock::time_point start = Clock::now();
    // A pass over a large batch takes minutes, one layer seconds.
    kit.engine->forward(prepared.replica->parameters().address(), batch, advanced);
    kit.engine->backward(static_cast<float>(part.factor()), kit.gradients.floats().address(), advanced);
    const double seconds_taken = std::chrono::duration<double>(Clock::now() - start).count();
    total_seconds += seconds_taken;
    if (i > 0 || seconds_taken > kMaxProbe) seconds.push_back(seconds_taken);
    if (seconds_taken > kMaxProbe) break;
  }
  return median(std::move(seconds));
}

// The facts of the view, once the kit has its engine.
std::shared_ptr<const PreparedView> view_of(const PreparationOptions& options, const LocalShare& part,
                                            const TrainingKit& kit, double step_seconds,
                                            const engine::ComputeDevice& compute) {
  const engine::Model& model = kit.prepared->model;
  const auto view = std::make_shared<PreparedView>();
  view->run = kit.prepared;
  view->local_batch = static_cast<std::uint32_t>(part.share().count);
  view->engine_build = kit.engine->build();
  view->engine_choices = kit.engine->choices();
  view->step_seconds = step_seconds;
  view->activation_bytes = kit.engine->activation_bytes();
  if (compute.accelerator() != nullptr) {
    view->device_bytes = space_bytes(options.job, model) + view->activation_bytes;
    view->device_reserve = reserve_of(options, part, model);
  }
  if (!replays(options.job)) view->activation_bytes += sample_bytes(model, part.share().count);
  return view;
}

}  // namespace

std::unique_ptr<engine::BatchSource> batches_of(const PreparationOptions& options, const LocalShare& part,
                                                const Prepared& prepared, Step first, std::uint64_t steps,
                                                kernels::MemorySpace& space) {
  if (replays(options.job)) return nullptr;
  // Samples in memory are copied faster than any model uses them; others are decoded or drawn.
  const int threads = prepared.data->train.source == nullptr ? 1 : std::max(1, static_cast<int>(prepared.threads));
  return std::make_unique<engine::BatchSource>(
      prepared.data, engine::BatchSource::Options{options.job.seed, part.global_batch, part.share(), first.value(),
                                                  steps, prepared.recipe, threads, &space});
}

Result<TrainingKit> prepare_view(const PreparationOptions& options, const LocalShare& part,
                                 std::shared_ptr<const Prepared> prepared, std::uint64_t host_bytes,
                                 const engine::ComputeDevice& compute, const std::function<void()>& advance) {
  kernels::MemorySpace& space = compute.space();
  TrainingKit kit;
  kit.part = part;
  kit.tensors = space.make_kernels();
  kit.gradients = kernels::MemoryArray(space, prepared->model.segments.padded_count());
  kit.prepared = std::move(prepared);
  if (const Status made = make_engine(options, part, host_bytes, compute, advance, kit); !made.ok())
    return made.error();
  const double step_seconds = probe(options, part, *kit.prepared, space, kit, advance);
  kit.view = view_of(options, part, kit, step_seconds, compute);
  const Step first(kit.prepared->replica->committed_rounds().value());
  kit.batches = batches_of(options, part, *kit.prepared, first, kit.prepared->steps, space);
  return kit;
}

// --- another part ---

namespace {

// Replayed gradients depend on the rank.
bool can_keep_engine(const PreparationOptions& options, const TrainingKit& kit, const LocalShare& part) {
  return kit.engine && kit.part.share().count == part.share().count &&
         kit.part.at_once(options.job.micro_batch) == part.at_once(options.job.micro_batch) &&
         (!replays(options.job) || kit.part.self == part.self);
}

// The limit of host memory for the run, which already holds state and gradient if they are in host memory.
std::uint64_t allowed_host_bytes(const PreparationOptions& options, const TrainingKit& kit, bool on_device) {
  const Prepared& run = *kit.prepared;
  if (options.memory_bytes != 0 || on_device) return allowed_memory(options.memory_bytes);
  const std::uint64_t held = run.replica->bytes() + kit.gradients.floats().size() * sizeof(float);
  return allowed_memory(0) + held;
}

Status rebuild_kit(const PreparationOptions& options, TrainingKit& kit, const LocalShare& part, Step first,
                   const engine::ComputeDevice& compute, const std::function<void()>& advance) {
  if (Status valid = check_shares(part); !valid.ok()) return valid;
  const engine::Share before = kit.part.share(), share = part.share();
  const bool same_engine = can_keep_engine(options, kit, part);
  const bool same_batches = same_engine && (kit.batches || replays(options.job)) && before.first == share.first &&
                            kit.part.global_batch == part.global_batch;
  const double sample_seconds = kit.view->step_seconds / kit.view->local_batch;
  if (same_engine) {
    if (!same_batches) kit.engine->forget_prefetch();  // else it serves the next step
  } else {
    kit.engine.reset();
  }
  if (!same_batches) kit.batches.reset();
  kit.part = part;
  if (!same_engine) {
    const std::uint64_t host_bytes = allowed_host_bytes(options, kit, compute.accelerator() != nullptr);
    if (Status made = make_engine(options, part, host_bytes, compute, advance, kit); !made.ok()) return made;
  }
  kit.view = view_of(options, part, kit, sample_seconds * share.count, compute);
  if (!same_batches)
    kit.batches = batches_of(options, part, *kit.prepared, first, kit.prepared->steps, compute.space());
  return {};
}

}  // namespace

Status rebuild(const PreparationOptions& options, TrainingKit& kit, const LocalShare& part, Step first,
               const engine::ComputeDevice& compute, const std::function<void()>& advance) {
  try {
    const Status rebuilt = rebuild_kit(options, kit, part, first, compute, advance);
    return rebuilt.ok() ? rebuilt : Status(on_node(options, rebuilt.error()));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kRefused, options.node + " does not have enough memory for its share of " +
                                          std::to_string(part.share().count) + " samples" + options.unsaved_note};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, options.node + " cannot continue with its share of " +
                                         std::to_string(part.share().count) + " samples: " + error.what()};
  }
}

}  // namespace tg::daemon

#include "daemon/run/preparation.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/run/memory_check.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "engine/host/processors.h"
#include "engine/optimizer.h"
#include "engine/replay/replay_engine.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kProbes = 3;  // timed forward + backward passes; the median counts

bool replays(const schema::JobSpec& job) { return job.compute == schema::Compute::kReplay; }

std::uint64_t global_batch(const PreparationOptions& options) {
  return schema::resolved_global_batch(options.job, options.weights.size());
}

Error on_node(const PreparationOptions& options, const Error& error) {
  return {error.kind, options.node + ": " + error.message};
}

// More threads than processors only wait for each other, and enough of them keep the whole node from answering.
Status check_threads(const PreparationOptions& options) {
  const auto processors = static_cast<std::uint64_t>(engine::usable_processors());
  if (options.job.threads <= processors) return {};
  return Error{ErrorKind::kInvalidJob, "threads = " + std::to_string(options.job.threads) + ", and this node may use " +
                                           std::to_string(processors) +
                                           (processors == 1 ? " processor" : " processors") +
                                           "; ask for no more, or leave threads to each node's configuration"};
}

Result<engine::Model> make_model(const schema::JobSpec& job) {
  engine::Model model = engine::make_model(job.model);
  if (!replays(job) && !model.trainable())
    return Error{ErrorKind::kInvalidJob,
                 std::string("model = ") + to_word(job.model) +
                     " cannot be trained yet, only its gradients can be replayed; set compute = "
                     "replay, or another model"};
  return model;
}

// The data, and how they become the model's input. Where gradients are replayed both stay empty: nothing is read then.
Status prepare_data(const PreparationOptions& options, Prepared& prepared) {
  const schema::JobSpec& job = options.job;
  const engine::Model& model = prepared.model;
  prepared.data = std::make_shared<const engine::Dataset>();
  if (replays(job)) return {};
  const auto data = engine::load_dataset(dataset_options(job, options.data_dir, options.threads));
  if (!data.ok()) return data.error();
  if (const Status fits = engine::check_labels(**data, model.classes); !fits.ok()) return fits;
  auto recipe = engine::make_recipe(**data, model.input, recipe_options(job), static_cast<int>(options.threads));
  if (!recipe.ok()) return recipe.error();
  prepared.data = *data;
  prepared.recipe = std::move(recipe).value();
  return {};
}

// Samples in memory are filled in faster than any model takes them; others are decoded or drawn.
int data_threads(const Prepared& prepared) {
  return prepared.data->train.source == nullptr ? 1 : std::max(1, static_cast<int>(prepared.threads));
}

// The one place that chooses what computes.
Result<std::unique_ptr<engine::Engine>> make_engine(const PreparationOptions& options, const engine::Model& model,
                                                    int batch) {
  const schema::JobSpec& job = options.job;
  if (replays(job))
    return engine::make_replay_engine(model, {job.seed, static_cast<std::uint32_t>(options.self.index()),
                                              job.replay_zeros, job.replay_gradients.value_or("")});
  return engine::make_cpu_engine(model, {static_cast<int>(options.threads), batch, kEvaluationBatch, job.seed});
}

// Seconds of a forward + backward. Also makes the libraries compile their code before the first step is timed;
// gradients that are replayed are made here.
double probe(const PreparationOptions& options, const Prepared& prepared, TrainingKit& kit, const engine::Share& part,
             const std::function<void()>& advance) {
  engine::Batch batch;
  batch.count = part.count;
  if (!replays(options.job)) {
    engine::SampleStream stream(options.job.seed, prepared.data->train.count());
    engine::fill_training_batch(*prepared.data, prepared.recipe, stream, options.job.seed, part.first, batch);
  }
  const double factor = static_cast<double>(options.weights.size()) / static_cast<double>(global_batch(options));
  std::vector<double> seconds;
  for (int i = 0; i <= kProbes; ++i) {
    const Clock::time_point start = Clock::now();
    kit.engine->forward(prepared.replica->parameters().address(), batch);
    kit.engine->backward(static_cast<float>(factor), kit.gradients.floats().address(), [](std::size_t, std::size_t) {});
    if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    advance();
  }
  return median(std::move(seconds));
}

Result<TrainingKit> make_kit(const PreparationOptions& options, kernels::Home& home,
                             const std::function<void()>& advance) {
  const schema::JobSpec& job = options.job;
  if (const Status fits = check_threads(options); !fits.ok()) return on_node(options, fits.error());
  const auto prepared = std::make_shared<Prepared>();
  Result<engine::Model> model = make_model(job);
  if (!model.ok()) return model.error();
  prepared->model = std::move(model).value();
  if (const Status data = prepare_data(options, *prepared); !data.ok()) return on_node(options, data.error());
  advance();
  const engine::Share part = engine::split(global_batch(options), options.weights)[options.self.index()];
  if ((!replays(job) && prepared->data->train.count() == 0) || part.count == 0)
    return Error{ErrorKind::kInvalidJob, "the global batch of " + std::to_string(global_batch(options)) +
                                             " does not reach all " + std::to_string(options.weights.size()) +
                                             " members; raise global-batch"};
  TrainingKit kit;
  Result<std::unique_ptr<engine::Engine>> engine = make_engine(options, prepared->model, part.count);
  if (!engine.ok()) return on_node(options, engine.error());
  kit.engine = std::move(engine).value();
  const engine::SegmentTable& segments = prepared->model.segments;
  const std::uint64_t least = least_run_bytes(options.job, prepared->model, options.weights.size(), options.threads);
  if (const Status fits = check_memory(least, 0, options.memory_bytes); !fits.ok())
    return on_node(options, {fits.error().kind, fits.error().message + options.unsaved_note});
  prepared->replica = std::make_shared<Replica>(home, prepared->model, engine::slot_count(optimizer_of(job).kind),
                                                job.seed, keeps_average(job));
  prepared->initial_digest = Replica::combine(prepared->replica->segment_digests());
  prepared->data_hash = prepared->data->hash;
  prepared->model_hash = prepared->model.hash();
  prepared->local_batch = static_cast<std::uint32_t>(part.count);
  prepared->threads = options.threads;
  prepared->engine_build = kit.engine->build();
  kit.tensors = home.make_kernels();
  kit.gradients = kernels::HomeArray(home, segments.padded_count());
  prepared->step_seconds = probe(options, *prepared, kit, part, advance);
  if (!replays(job))
    kit.batches = std::make_unique<engine::BatchSource>(
        prepared->data, engine::BatchSource::Options{job.seed, global_batch(options), part, 0, job.steps,
                                                     prepared->recipe, data_threads(*prepared)});
  kit.prepared = prepared;
  return kit;
}

}  // namespace

Result<TrainingKit> prepare(const PreparationOptions& options, kernels::Home& home,
                            const std::function<void()>& advance) {
  try {
    return make_kit(options, home, advance);
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, options.node + " cannot prepare the run: " + error.what()};
  }
}

}  // namespace tg::daemon

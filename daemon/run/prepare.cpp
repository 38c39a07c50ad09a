#include "daemon/run/prepare.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/run/description.h"
#include "daemon/run/memory_check.h"
#include "daemon/run/rebuild.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "daemon/store/recovery_points.h"
#include "daemon/store/saved_arrays.h"
#include "engine/data/class_weights.h"
#include "engine/initial_file.h"
#include "engine/optimizer.h"
#include "engine/resources/processors.h"
#include "kernels/base/hex.h"
#include "kernels/base/log_throttle.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kLogInterval{10};

// Runs a call at the end of a scope, also if advance() throws.
class ScopeGuard {
 public:
  explicit ScopeGuard(std::function<void()> call) : call_(std::move(call)) {}
  ~ScopeGuard() { call_(); }
  ScopeGuard(const ScopeGuard&) = delete;

 private:
  const std::function<void()> call_;
};

// More threads than processors only wait for each other, and many of them keep the node from answering.
Status check_threads(const PreparationOptions& options) {
  const auto processors = static_cast<std::uint64_t>(engine::usable_processors());
  if (options.job.threads <= processors) return {};
  return Error{ErrorKind::kInvalidJob,
               "threads = " + std::to_string(options.job.threads) + ", and this node may use " +
                   std::to_string(processors) + (processors == 1 ? " processor" : " processors") +
                   "; ask for at most that many, or leave threads to each node's configuration"};
}

// A replayed run has the model as published, and no data.
Status prepare_replay(const schema::JobSpec& job, Prepared& prepared) {
  Result<engine::Model> model = engine::make_model(model_options(job));
  if (!model.ok()) return model.error();
  prepared.model = std::move(model).value();
  prepared.data = std::make_shared<const engine::Dataset>();
  return {};
}

}  // namespace

Status prepare_training(const PreparationOptions& options, Prepared& prepared, const std::function<void()>& advance) {
  const schema::JobSpec& job = options.job;
  engine::DatasetOptions wanted = dataset_options(job, options.data_dir, options.threads);
  wanted.memory_dir = options.memory_dir;
  LogThrottle throttle(kLogInterval, LogThrottle::Clock::now() + kLogInterval);
  wanted.advanced = [&](std::size_t done, std::size_t of) {
    advance();
    if (of == 0) return;
    options.show_images(done, of);
    if (throttle.happened()) options.log_progress(images_text(done, of));
  };
  const auto data = [&] {
    const ScopeGuard over([&] { options.show_images(0, 0); });
    return engine::load_dataset(wanted);
  }();
  if (!data.ok()) return data.error();
  Result<engine::Model> model = engine::make_model(model_options(job, (*data)->train.stored, (*data)->classes.size()));
  if (!model.ok()) return model.error();
  prepared.model = std::move(model).value();
  if (const Status fits = engine::check_labels(**data, prepared.model.classes); !fits.ok()) return fits;
  if (job.balanced_classes || !job.class_weights.empty()) {
    Result<std::vector<double>> weights = engine::class_weights(**data, job.class_weights);
    if (!weights.ok()) return weights.error();
    prepared.model.class_weights = *std::move(weights);
  }
  auto recipe = engine::make_recipe(**data, prepared.model.input, recipe_options(job),
                                    static_cast<int>(options.threads), advance);
  if (!recipe.ok()) return recipe.error();
  prepared.data = *data;
  prepared.recipe = std::move(recipe).value();
  Result<std::string> description = describe(prepared.model, prepared.recipe, *prepared.data, job);
  if (!description.ok()) return description.error();
  prepared.description = std::move(description).value();
  return {};
}

namespace {

// Opens the initial file; returns nothing if the parameters are drawn.
Result<std::optional<engine::InitialFile>> open_initial(const PreparationOptions& options, Prepared& prepared,
                                                        const std::function<void()>& advance) {
  if (options.job.initial.empty()) return std::optional<engine::InitialFile>();
  if (options.data_dir.empty() && !options.job.initial.starts_with('/'))
    return Error{ErrorKind::kInvalidJob,
                 "initial = " + options.job.initial +
                     " is relative to data-dir, and this node has none; set data-dir, or give a "
                     "path that begins with /: " +
                     engine::kInitialIs};
  const std::string path = std::filesystem::path(options.data_dir) / options.job.initial;
  Result<engine::InitialFile> file = engine::InitialFile::open(path, prepared.model, options.job.seed, advance);
  if (!file.ok()) return file.error();
  prepared.initial_notes = {"parameters from " + path};
  prepared.initial_notes.insert(prepared.initial_notes.end(), file->notes().begin(), file->notes().end());
  return std::optional(std::move(file).value());
}

// Reads the state from which a run is resumed.
Status restore(const PreparationOptions& options, Prepared& prepared, const std::function<void()>& advance) {
  const SavedStart& start = *options.start;
  const Result<StateFile> file = open_state(start.directory, start.state);
  if (!file.ok()) return file.error();
  const Replica& replica = *prepared.replica;
  const Result<StateArrays> arrays = arrays_in(*file, prepared.model, replica.slot_count(), replica.keeps_average(),
                                               replica.keeps_best() && start.counters.best_step > 0);
  if (!arrays.ok()) return arrays.error();
  if (Status read = prepared.replica->restore(*arrays, Round(start.state.step), advance); !read.ok()) return read;
  prepared.initial_notes = {"the state of step " + std::to_string(start.state.step) + " from " + file->path};
  return {};
}

Error differs(const char* what, const std::string& then, const std::string& now, const char* advice) {
  return {ErrorKind::kInvalidJob,
          std::string(what) + " is not what the run began with: " + then + " then, " + now + " now; " + advice};
}

// A resumed run computes the bits of an uninterrupted one, or an error says why it cannot.
Status check_sameness(const SavedStart& start, const Prepared& prepared) {
  if (prepared.data_hash != start.data_hash)
    return differs("the data", hex_digest(start.data_hash), hex_digest(prepared.data_hash),
                   "put back the files that it was trained on");
  if (prepared.model_hash != start.model_hash)
    return differs("the model", hex_digest(start.model_hash), hex_digest(prepared.model_hash),
                   "install the tgd that trained it");
  if (start.threads != 0 && start.threads != prepared.threads)
    return differs("the number of threads", std::to_string(start.threads), std::to_string(prepared.threads),
                   "set threads as it was, or accept other last bits with tgctl resume --any-build");
  return {};
}

Status check_engine(const SavedStart& start, const std::string& build) {
  if (start.engine_build.empty() || start.engine_build == build) return {};
  return differs("the engine", start.engine_build, build,
                 "install the tgd that trained it, or accept other last bits with tgctl resume --any-build");
}

// Makes the parts that last for the run. host_bytes: set to the limit of host memory before anything is allocated.
Result<std::shared_ptr<Prepared>> prepare_run(const PreparationOptions& options, const LocalShare& part,
                                              const engine::ComputeDevice& compute,
                                              const std::function<void()>& advance, std::uint64_t& host_bytes) {
  const schema::JobSpec& job = options.job;
  if (const Status fits = check_threads(options); !fits.ok()) return fits.error();
  const auto prepared = std::make_shared<Prepared>();
  const Status ready = replays(job) ? prepare_replay(job, *prepared) : prepare_training(options, *prepared, advance);
  if (!ready.ok()) return ready.error();
  if (const Status later = check_later_shares(part, prepared->model); !replays(job) && !later.ok())
    return later.error();
  if (!replays(job) && prepared->data->train.count() == 0)
    return Error{ErrorKind::kInvalidJob, "the data have no training samples"};
  if (keeps_best(job) && prepared->data->test.labels.empty())
    return Error{ErrorKind::kInvalidJob,
                 "keep = best needs a test set, and the data have none; set test-share, or keep = last"};
  advance();
  const Result<std::uint64_t> steps = schema::resolved_steps(job, prepared->data->train.count(), part.global_batch);
  if (!steps.ok()) return steps.error();
  prepared->steps = *steps;
  if (!replays(job))
    prepared->read = engine::summarize_data(*prepared->data, prepared->recipe, part.global_batch,
                                            {job.flip.has_value(), !prepared->model.class_weights.empty()});
  prepared->data_hash = prepared->data->hash;
  prepared->model_hash = prepared->model.hash();
  prepared->threads = options.threads;
  if (options.start)
    if (const Status same = check_sameness(*options.start, *prepared); !same.ok()) return same.error();
  if (const Status fits = check_whole_run(options, *prepared, part, compute); !fits.ok())
    return Error{fits.error().kind, fits.error().message + options.unsaved_note};
  host_bytes = allowed_memory(options.memory_bytes);
  const bool restores = options.start && !options.start->from_the_beginning;
  const Result<std::optional<engine::InitialFile>> initial =
      restores ? std::optional<engine::InitialFile>() : open_initial(options, *prepared, advance);
  if (!initial.ok()) return initial.error();
  prepared->replica =
      std::make_shared<Replica>(compute.space(), prepared->model, engine::slot_count(optimizer_of(job).kind), job.seed,
                                keeps_average(job), initial.value() ? &**initial : nullptr, advance);
  if (keeps_best(job)) prepared->replica->make_room_for_best();
  if (restores)
    if (const Status restored = restore(options, *prepared, advance); !restored.ok()) return restored.error();
  prepared->initial_digest = Replica::combine(prepared->replica->segment_digests());
  if (options.start && prepared->initial_digest != options.start->state.digest)
    return Error{ErrorKind::kCorrupt, "the state of step " + std::to_string(options.start->state.step) + " in " +
                                          options.start->directory + " is damaged: it has the digest " +
                                          hex_digest(prepared->initial_digest) + ", and " +
                                          hex_digest(options.start->state.digest) + " was written"};
  return prepared;
}

Result<TrainingKit> make_kit(const PreparationOptions& options, const LocalShare& part,
                             const engine::ComputeDevice& compute, const std::function<void()>& advance) {
  if (const Status valid = check_shares(part); !valid.ok()) return valid.error();
  std::uint64_t host_bytes = 0;
  Result<std::shared_ptr<Prepared>> prepared = prepare_run(options, part, compute, advance, host_bytes);
  if (!prepared.ok()) return on_node(options, prepared.error());
  Result<TrainingKit> kit = prepare_view(options, part, *std::move(prepared), host_bytes, compute, advance);
  if (!kit.ok()) return on_node(options, kit.error());
  if (options.start)
    if (const Status same = check_engine(*options.start, kit->view->engine_build); !same.ok())
      return on_node(options, same.error());
  return kit;
}

}  // namespace

Result<TrainingKit> prepare(const PreparationOptions& options, const LocalShare& part,
                            const engine::ComputeDevice& compute, const std::function<void()>& advance) {
  try {
    return make_kit(options, part, compute, advance);
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kRefused, options.node + " does not have enough memory for the run" + options.unsaved_note};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, options.node + " cannot prepare the run: " + error.what()};
  }
}

}  // namespace tg::daemon

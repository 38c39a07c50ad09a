#include "daemon/run/misclassifications.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "daemon/run/memory_check.h"
#include "daemon/run/prepare.h"
#include "daemon/run/rebuild.h"
#include "daemon/run/sample_to_wire.h"
#include "daemon/store/saved_arrays.h"
#include "engine/predictions.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

Error differs(const std::string& what, std::uint64_t then, std::uint64_t now, const std::string& advice) {
  return {ErrorKind::kRefused,
          what + " not those of the run: " + hex_digest(then) + " then, " + hex_digest(now) + " now; " + advice};
}

Status check_sameness(const PreparationOptions& options, const RunRecord& record, const Prepared& prepared) {
  if (prepared.data->hash != record.data_hash)
    return differs("the data are", record.data_hash, prepared.data->hash,
                   "put back the files that it was trained on, or ask another member");
  if (prepared.model.hash() != record.model_hash)
    return differs("the layers of " + std::string(to_word(options.job.model)) + " are", record.model_hash,
                   prepared.model.hash(), "install the tgd that trained it, " + record.build);
  if (prepared.data->test.count() == 0) return Error{ErrorKind::kRefused, "run " + record.id + " has no test data"};
  return {};
}

// Checks that the file is the one that was written at the run's end.
Status check_file(const RunRecord& record, const std::string& path) {
  const Result<engine::FileMark> mark = engine::mark_of_file(path);
  if (!mark) return mark.error();
  const auto written = record.files.find(kModelFile);
  if (written != record.files.end() && *mark == written->second) return {};
  return Error{ErrorKind::kCorrupt,
               path + " is not what was written at the end of run " + record.id + "; ask another member"};
}

// Reads the averaged parameters and the running statistics.
Result<std::unique_ptr<Replica>> read_model(const RunRecord& record, const std::string& path,
                                            const engine::Model& model, kernels::MemorySpace& space,
                                            const std::function<void()>& advance) {
  Result<engine::OpenTensors> open = engine::open_safetensors(path);
  if (!open) return open.error();
  StateFile file;
  file.path = path;
  file.tensors = std::move(open->tensors);
  const Result<StateArrays> arrays = arrays_in(file, model, 0, false);
  if (!arrays) return arrays.error();
  auto replica = std::make_unique<Replica>(space, model, 0, record.seed, false, nullptr, advance);
  if (Status read = replica->restore(*arrays, Round(record.status.digest_step), advance); !read) return read.error();
  return replica;
}

// Activations get the memory that the model and the samples leave.
Result<std::unique_ptr<engine::Engine>> make_evaluator(const PreparationOptions& options, const engine::Model& model,
                                                       const engine::ComputeDevice& compute,
                                                       const std::function<void()>& advance) {
  const std::uint64_t state = Replica::bytes(model, 0, false);
  const auto evaluated = static_cast<std::uint64_t>(evaluation_samples(model.input));
  const bool on_device = compute.accelerator() != nullptr;
  const std::uint64_t others = evaluated * model.input.elements() * sizeof(float) + (on_device ? 0 : state);
  if (Status fits = check_memory(others, 0, options.memory_bytes); !fits) return fits.error();
  if (Status fits = on_device ? check_device_memory(state, kLazyDeviceBytes, compute) : Status(); !fits)
    return fits.error();
  const std::uint64_t taken = on_device ? state + kLazyDeviceBytes : others;
  const std::uint64_t allowed = on_device ? compute.memory().free : allowed_memory(options.memory_bytes);
  return compute.make_engine(model, {static_cast<int>(options.threads), 1, static_cast<int>(evaluated),
                                     options.job.seed, allowed > taken ? allowed - taken : 1, "", advance});
}

// The test samples in a batch: damaged ones are omitted.
std::vector<std::size_t> samples_in(const engine::Batch& batch, const Prepared& prepared, std::size_t first,
                                    int wanted) {
  std::vector<std::size_t> samples(static_cast<std::size_t>(wanted));
  std::iota(samples.begin(), samples.end(), first);
  if (batch.count == wanted) return samples;
  std::erase_if(samples, [&](std::size_t sample) {
    engine::Batch one;
    one.count = 1;
    engine::fill_evaluation_batch(*prepared.data, prepared.recipe, sample, one);
    return one.count == 0;
  });
  return samples;
}

// Evaluates each member's share in batches, as the members did.
std::vector<engine::Prediction> evaluate(const PreparationOptions& options, const RunRecord& record,
                                         const Prepared& prepared, const Replica& replica, engine::Engine& engine,
                                         const std::function<void()>& advance) {
  const std::size_t count = prepared.data->test.count();
  const std::vector<std::uint16_t> weights = record.weights.empty() ? std::vector<std::uint16_t>{1} : record.weights;
  std::vector<engine::Prediction> all;
  std::vector<float> logits;
  engine::Batch batch;
  for (const engine::Share& share : engine::split(count, weights)) {
    for (int done = 0; done < share.count;) {
      const int wanted = std::min(evaluation_samples(prepared.model.input), share.count - done);
      const std::size_t first = static_cast<std::size_t>(share.first) + static_cast<std::size_t>(done);
      batch.count = wanted;
      engine::fill_evaluation_batch(*prepared.data, prepared.recipe, first, batch, static_cast<int>(options.threads));
      done += wanted;
      advance();
      options.show_images(first + static_cast<std::size_t>(wanted), count);
      if (batch.count == 0) continue;
      logits.resize(batch.labels.size() * static_cast<std::size_t>(prepared.model.classes));
      engine.evaluate(replica.average().address(), replica.statistics().data(), batch, logits);
      const std::vector<engine::Prediction> some =
          engine::predictions(logits, batch.labels, samples_in(batch, prepared, first, wanted));
      all.insert(all.end(), some.begin(), some.end());
      advance();
    }
  }
  return all;
}

// A model may have more classes than the data name.
std::string class_name(const Prepared& prepared, std::size_t index) {
  const std::vector<std::string>& names = prepared.data->classes;
  return index < names.size() ? schema::clip_text(names[index], schema::kMaxNameBytes) : std::to_string(index);
}

schema::Misclassifications summary(const Prepared& prepared, const std::vector<engine::Prediction>& all,
                                   const std::function<void()>& advance) {
  const auto name = [&](std::size_t index) { return class_name(prepared, index); };
  schema::Misclassifications found;
  found.samples = all.size();
  found.correct = static_cast<std::uint64_t>(
      std::ranges::count_if(all, [](const engine::Prediction& one) { return one.said == one.label; }));
  const auto classes = static_cast<std::size_t>(prepared.model.classes);
  found.class_count = classes;
  if (classes <= schema::kMaxMatrixClasses) {
    for (std::size_t c = 0; c < classes; ++c) found.classes.push_back(name(c));
    found.counts = engine::confusion_matrix(all, classes);
  }
  for (const engine::ClassPair& pair : engine::most_confused(all, schema::kMaxConfusions))
    found.confusions.push_back({name(pair.label), name(pair.said), pair.count, pair.of});
  for (const engine::Prediction& one : engine::wrongest(all, schema::kMaxPictures)) {
    if (const auto sample = engine::shown_test_sample(*prepared.data, prepared.recipe, one.sample))
      found.worst.push_back({to_wire(*sample, name(one.label)), name(one.said), one.probability});
    advance();
  }
  return found;
}

Result<schema::Misclassifications> find(const PreparationOptions& options, const RunRecord& record,
                                        const std::string& directory, const engine::ComputeDevice& compute,
                                        const std::function<void()>& advance) {
  const std::string path = directory + "/" + kModelFile;
  if (Status whole = check_file(record, path); !whole) return whole.error();
  Prepared prepared;
  if (Status ready = prepare_training(options, prepared, advance); !ready) return ready.error();
  if (Status same = check_sameness(options, record, prepared); !same) return same.error();
  Result<std::unique_ptr<engine::Engine>> engine = make_evaluator(options, prepared.model, compute, advance);
  if (!engine) return engine.error();
  const Result<std::unique_ptr<Replica>> replica = read_model(record, path, prepared.model, compute.space(), advance);
  if (!replica) return replica.error();
  const std::vector<engine::Prediction> all = evaluate(options, record, prepared, **replica, **engine, advance);
  schema::Misclassifications found = summary(prepared, all, advance);
  found.run_id = record.id;
  found.node = options.node;
  found.step = record.status.digest_step;
  return found;
}

}  // namespace

Result<schema::Misclassifications> find_misclassifications(const PreparationOptions& options, const RunRecord& record,
                                                           const std::string& directory,
                                                           const engine::ComputeDevice& compute,
                                                           const std::function<void()>& advance) {
  try {
    const Result<schema::Misclassifications> found = find(options, record, directory, compute, advance);
    return found ? found : on_node(options, found.error());
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kRefused, options.node + " does not have enough memory to evaluate run " + record.id};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, options.node + " cannot evaluate run " + record.id + ": " + error.what()};
  }
}

}  // namespace tg::daemon

#include "daemon/doctor/node_checks.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/run/memory_check.h"
#include "daemon/step/job_layout.h"
#include "engine/data/folder/list.h"
#include "engine/dataset.h"
#include "engine/engine.h"
#include "engine/storage/safetensors.h"
#include "kernels/kernels.h"
#include "kernels/memory_array.h"
#include "schema/keys/keys.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {

using schema::Check;
using schema::Examination;

namespace {

// The optimizer with the most state, on the demo's network. A start checks what larger networks need.
schema::JobSpec usual_job() {
  schema::JobSpec job;
  job.model = ModelKind::kLenet;
  job.optimizer = OptimizerKind::kAdam;
  return job;
}

void check_keys(const schema::NodeConfig& config, Report& report) {
  std::string problem;
  if (!config.key_file.empty()) {
    const Result<std::string> text = schema::read_key_file(config.key_file);
    const Result<schema::ClusterKeys> keys =
        text ? schema::parse_cluster_keys(*text, config.key_file) : Result<schema::ClusterKeys>(text.error());
    if (!keys) problem = "the key file cannot be used any more: " + keys.error().message;
  }
  report.note([&](Examination& facts) {
    facts.has_keys = !config.key_file.empty();
    facts.key_problem = problem;
  });
}

void check_disk(const schema::NodeConfig& config, Report& report) {
  constexpr std::size_t kBytes = 64u << 10;
  const std::uint64_t need = usual_run_disk_bytes();
  report.note([&](Examination& facts) { facts.disk_need = need; });
  struct statvfs disk {};
  std::string problem;
  std::uint64_t left = 0;
  if (::statvfs(config.state_dir.c_str(), &disk) != 0) {
    problem = "state-dir " + config.state_dir + " cannot be looked at: " + std::strerror(errno) +
              "; is its disk mounted, and does it belong to the user of tgd?";
  } else {
    left = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
    if (disk.f_files > 0 && disk.f_favail == 0)
      problem = "the disk of state-dir has no inode left; delete files there (df -i " + config.state_dir + ")";
  }
  report.note([&](Examination& facts) { facts.disk_free = left; });
  if (problem.empty() && left >= kBytes) {  // a disk with less counts as full
    const std::string path = config.state_dir + "/doctor";
    const Status written = engine::write_file_atomically(path, std::string(kBytes, '\0'));
    if (!written) problem = written.error().message + "; repair or free up the disk of state-dir";
    ::unlink(path.c_str());
  }
  report.note([&](Examination& facts) { facts.disk_problem = problem; });
}

void check_memory_of_runs(const schema::NodeConfig& config, std::uint64_t threads, bool busy, Report& report) {
  const schema::JobSpec job = usual_job();
  const std::uint64_t need = least_run_bytes(job, engine::make_model(job.model), config.peers.size(), threads);
  const std::uint64_t allowed = config.memory_mib << 20;
  const Status fits = busy ? Status() : check_memory(need, 0, allowed);
  report.note([&](Examination& facts) {
    facts.memory_need = need;
    facts.memory_left = allowed_memory(allowed);
    if (!fits) facts.memory_problem = fits.error().message;
  });
}

void check_descriptors(const schema::NodeConfig& config, Report& report) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  std::error_code unknown;
  std::uint64_t open = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", unknown), end; at != end; at.increment(unknown)) ++open;
  report.note([&](Examination& facts) {
    facts.descriptors = limit.rlim_cur;
    facts.descriptors_open = open;
    facts.descriptors_need = schema::descriptors_of(config.peers.size());
  });
}

// Sets that jobs find by data-dir alone: if one of their files is there, jobs may use them.
struct KnownSet {
  DatasetKind kind;
  const char* folder;  // below data-dir
  bool above;          // or in data-dir itself
  std::array<const char*, 2> names;
};
constexpr KnownSet kKnownSets[] = {{DatasetKind::kMnist, "mnist", true, {"train-images", "t10k-images"}},
                                   {DatasetKind::kCifar10, "cifar-10-batches-bin", true, {"data_batch_", "test_batch"}},
                                   {DatasetKind::kCifar100, "cifar-100-binary", false, {"train.bin", "test.bin"}}};
static_assert(std::size(kKnownSets) <= schema::kMaxDataSets);

bool has_set(const std::string& directory, const KnownSet& set) {
  const auto some_file = [&](const std::string& folder) {
    std::error_code unknown;
    for (std::filesystem::directory_iterator at(folder, unknown), end; !unknown && at != end; at.increment(unknown)) {
      const std::string name = at->path().filename();
      if (std::ranges::any_of(set.names, [&](const char* start) { return name.starts_with(start); })) return true;
    }
    return false;
  };
  return (set.above && some_file(directory)) || some_file(directory + "/" + set.folder);
}

// A folder of pictures is listed, not read: a start reads it. Nothing where none was meant.
std::optional<schema::DataFacts> look_at_pictures(const std::string& directory) {
  schema::DataFacts facts{to_word(DatasetKind::kFolder), 0, ""};
  const auto looked = engine::look_at_listing(directory);
  if (!looked) {
    facts.problem = looked.error().message;
    return facts;
  }
  const std::optional<engine::FolderSight>& sight = *looked;
  if (!sight) return std::nullopt;
  facts.hash = sight->names_hash;
  facts.seen = std::to_string(sight->classes) + (sight->classes == 1 ? " class, " : " classes, ") +
               std::to_string(sight->train) + (sight->has_test ? " + " + std::to_string(sight->test) : "") +
               " pictures";
  return facts;
}

void check_data(const schema::NodeConfig& config, Report& report) {
  if (config.data_dir.empty()) return;
  bool any = false;
  for (const KnownSet& set : kKnownSets) {
    if (!has_set(config.data_dir, set)) continue;
    any = true;
    const auto data = engine::load_dataset({set.kind, config.data_dir});
    report.note([&](Examination& facts) {
      facts.data.push_back({to_word(set.kind), data ? (*data)->hash : 0, data ? "" : data.error().message, ""});
    });
  }
  if (any) return;
  if (std::optional<schema::DataFacts> pictures = look_at_pictures(config.data_dir))
    report.note([&](Examination& facts) { facts.data.push_back(*std::move(pictures)); });
}

std::string wrong_configuration(const schema::NodeConfig& config) {
  std::error_code unknown;
  if (!config.data_dir.empty() && !std::filesystem::is_directory(config.data_dir, unknown))
    return "data-dir = " + config.data_dir + " is not a folder here; create it, or correct the line";
  if (config.fault) return "fault = " + format_fault(*config.fault) + " is set; it is for tests, take the line out";
  return "";
}

}  // namespace

std::uint64_t usual_run_disk_bytes() {
  const schema::JobSpec job = usual_job();
  return disk_bytes(job, engine::make_model(job.model));
}

Result<std::string> test_engine(const engine::ComputeDevice& compute) {
  // The known loss and length of the gradient, for every instruction set: float32 sums in another order differ by 1e-5.
  // Factors with 10 and 7 bits of mantissa, through LeNet's four layers, differ by at most 2^-10 and 2^-7 each, with
  // signs that cancel.
  constexpr double kKnownLoss = 18.945972, kKnownLength = 29.877474;
  const double tolerance = compute.math() == Math::kFp32 ? 1e-3 : compute.math() == Math::kTf32 ? 5e-3 : 4e-2;
  constexpr int kSamples = 8;
  std::string tested;
  for (const kernels::Kernels* variant : kernels::available()) {
    if (!kernels::self_test(*variant))
      return Error{ErrorKind::kFailed, "the " + std::string(variant->name) +
                                           " kernels compute other results than the scalar ones; set kernels = scalar "
                                           "there, and have the machine's memory tested"};
    tested += (tested.empty() ? "" : ", ") + std::string(variant->name);
  }
  const engine::Model model = engine::make_model(ModelKind::kLenet);
  const auto data = engine::load_dataset({DatasetKind::kSynthetic, "", 1, 64, 16});
  if (!data) return data.error();
  const auto recipe = engine::make_recipe(**data, model.input);
  if (!recipe) return recipe.error();
  auto made = compute.make_engine(model, {1, kSamples, kSamples});
  if (!made) return made.error();
  AlignedArray<float> values(model.segments.padded_count());
  kernels::MemoryArray parameters(compute.space(), values.size()), gradient(compute.space(), values.size());
  const auto tensors = compute.space().make_kernels();
  engine::initialize(model.segments, 1, values.data());
  tensors->copy_in(std::as_bytes(values.span()), parameters.floats());
  engine::SampleStream stream(1, (*data)->train.count());
  engine::Batch batch;
  batch.count = kSamples;
  engine::fill_training_batch(**data, *recipe, stream, 1, 0, batch);
  const double loss = (*made)->forward(parameters.floats().address(), batch);
  (*made)->backward(1, gradient.floats().address(), [](std::size_t, std::size_t) {});
  tensors->copy_out(gradient.floats(), std::as_writable_bytes(values.span()));
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const double length = std::sqrt(squares);
  // Written so that NaN is wrong too.
  if (!(std::abs(loss - kKnownLoss) < tolerance * kKnownLoss) ||
      !(std::abs(length - kKnownLength) < tolerance * kKnownLength))
    return Error{ErrorKind::kFailed,
                 "a pass of LeNet over known samples gives a loss of " + std::to_string(loss) +
                     " and a gradient of length " + std::to_string(length) + ", not " + std::to_string(kKnownLoss) +
                     " and " + std::to_string(kKnownLength) +
                     (compute.accelerator() == nullptr ? "; reinstall oneDNN, and have the machine's memory tested"
                                                       : "; reinstall driver and cuDNN, or set engine = cpu there")};
  const std::string by = compute.accelerator() == nullptr ? (*made)->build()
                                                          : compute.name() + ", " + to_word(compute.math()) + ", " +
                                                                std::string(compute.accelerator()->library());
  return tested + " kernels agree; a pass of LeNet gives the known gradient (" + by + ")" +
         (compute.why_not().empty() || compute.module_missing() ? "" : "; not on a GPU: " + compute.why_not());
}

void check_node(const schema::NodeConfig& config, const engine::ComputeDevice& compute, std::uint64_t threads,
                bool busy, Report& report) {
  report.begin(Check::kConfiguration);
  const std::string wrong = wrong_configuration(config);
  report.note([&](Examination& facts) {
    facts.configuration = wrong;
    facts.data_dir = config.data_dir;
  });
  report.begin(Check::kKeys);
  check_keys(config, report);
  report.begin(Check::kDescriptors);
  check_descriptors(config, report);
  report.begin(Check::kMemory);
  check_memory_of_runs(config, threads, busy, report);
  report.begin(Check::kDisk);
  check_disk(config, report);
  if (!busy) {
    report.begin(Check::kEngine);
    Result<std::string> tested = [&] {
      try {
        return test_engine(compute);
      } catch (const std::exception& error) {
        return Result<std::string>(Error{ErrorKind::kFailed, error.what()});
      }
    }();
    report.note([&](Examination& facts) {
      (tested ? facts.engine : facts.engine_problem) = tested ? *tested : tested.error().message;
    });
    report.begin(Check::kData);
    check_data(config, report);
  }
  report.node_checks_done();
}

}  // namespace tg::daemon

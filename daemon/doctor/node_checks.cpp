#include "daemon/doctor/node_checks.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "daemon/doctor/problems.h"
#include "daemon/run/memory_check.h"
#include "daemon/step/job_layout.h"
#include "engine/data/folder/list.h"
#include "engine/dataset.h"
#include "engine/model.h"
#include "engine/storage/safetensors.h"
#include "schema/keys/keys.h"
#include "schema/limits.h"

namespace tg::daemon {

using schema::DataFacts;
using schema::Examination;

namespace {

// The optimizer with the most state, on the demo's network. A start checks what larger networks need.
schema::JobSpec usual_job() {
  schema::JobSpec job;
  job.model = ModelKind::kLenet;
  job.optimizer = OptimizerKind::kAdam;
  return job;
}

std::string key_problem(const schema::NodeConfig& config) {
  if (config.key_file.empty()) return "";
  const Result<std::string> text = schema::read_key_file(config.key_file);
  if (!text) return text.error().message;
  const Result<schema::ClusterKeys> keys = schema::parse_cluster_keys(*text, config.key_file);
  return keys ? "" : keys.error().message;
}

std::string disk_problem(const schema::NodeConfig& config) {
  constexpr std::size_t kBytes = 64u << 10;
  const schema::JobSpec job = usual_job();
  const std::uint64_t need = disk_bytes(job, engine::make_model(job.model)) + kMinDiskBytes;
  struct statvfs disk {};
  if (::statvfs(config.state_dir.c_str(), &disk) != 0)
    return "state-dir " + config.state_dir + " cannot be read: " + std::strerror(errno) +
           "; is its disk mounted, and does it belong to the user of tgd?";
  const std::uint64_t left = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (left < need)
    return std::to_string(left >> 20) + " MiB free in state-dir, a run of LeNet with adam needs " +
           std::to_string(need >> 20) +
           "; delete runs (tgctl list, tgctl delete RUN), or move state-dir to a larger disk";
  const std::string path = config.state_dir + "/doctor";
  const Status written = engine::write_file_atomically(path, std::string(kBytes, '\0'));
  ::unlink(path.c_str());
  return written ? "" : written.error().message + "; repair the disk of state-dir, or free inodes (df -i)";
}

std::string memory_problem(const schema::NodeConfig& config, std::uint64_t threads) {
  const schema::JobSpec job = usual_job();
  const std::uint64_t need = min_run_bytes(job, engine::make_model(job.model), config.peers.size(), threads);
  const Status fits = check_memory(need, 0, config.memory_mib << 20);
  return fits ? thread_problem(threads) : fits.error().message;
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

std::vector<DataFacts> find_data(const schema::NodeConfig& config) {
  std::vector<DataFacts> found;
  std::error_code unknown;
  if (config.data_dir.empty()) return found;
  if (!std::filesystem::is_directory(config.data_dir, unknown))
    return {{"data-dir", 0, "data-dir = " + config.data_dir + " is not a folder; create it, or correct the line"}};
  for (const KnownSet& set : kKnownSets) {
    if (!has_set(config.data_dir, set)) continue;
    const auto data = engine::load_dataset({set.kind, config.data_dir});
    found.push_back({to_word(set.kind), data ? (*data)->hash : 0, data ? "" : data.error().message});
  }
  if (!found.empty()) return found;
  // A folder of pictures is compared by its names; a start reads it.
  const auto hash = engine::hash_listing(config.data_dir);
  if (!hash || *hash)
    found.push_back({to_word(DatasetKind::kFolder), hash ? **hash : 0, hash ? "" : hash.error().message});
  return found;
}

}  // namespace

std::string thread_problem(std::uint64_t threads) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> started;
  started.reserve(threads);
  std::string problem;
  try {
    while (started.size() < threads) started.emplace_back([ended] { ended.wait(); });
  } catch (const std::system_error& error) {
    problem = "only " + std::to_string(started.size()) + " of " + std::to_string(threads) +
              " threads can be started: " + error.what() +
              "; stop other programs, or raise TasksMax= of the service (ulimit -u)";
  }
  end.set_value();
  for (std::thread& thread : started) thread.join();
  return problem;
}

void check_node(const schema::NodeConfig& config, std::uint64_t threads, bool busy, ExaminationProgress& progress) {
  const auto run = [&](Check check, auto Examination::*field, auto find) {
    progress.note([&](Examination& facts) { facts.unfinished = to_word(check); });
    auto found = find();
    progress.note([&](Examination& facts) { facts.*field = std::move(found); });
  };
  progress.note([&](Examination& facts) { facts.data_dir = config.data_dir; });
  run(Check::kKeys, &Examination::key_problem, [&] { return key_problem(config); });
  if (!busy) run(Check::kMemory, &Examination::memory_problem, [&] { return memory_problem(config, threads); });
  run(Check::kDisk, &Examination::disk_problem, [&] { return disk_problem(config); });
  if (!busy) run(Check::kData, &Examination::data, [&] { return find_data(config); });
  progress.note([](Examination& facts) { facts.unfinished.clear(); });
  progress.end_node_checks();
}

}  // namespace tg::daemon

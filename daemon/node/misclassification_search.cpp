#include "daemon/node/misclassification_search.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/run/misclassifications.h"
#include "daemon/run/rebuild.h"
#include "engine/resources/processors.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kEndsWithin{3};

// Ends an evaluation whose result is no longer needed.
struct Cancelled {};

// The run's own number of threads, which gives the same bits, but no more than there are processors.
std::uint64_t threads_of(const RunRecord& record) {
  return std::clamp<std::uint64_t>(record.own.threads, 1, static_cast<std::uint64_t>(engine::usable_processors()));
}

}  // namespace

// The state that the thread shares with the node; it lives until both have released it.
struct MisclassificationSearch::Search {
  using Callback = std::function<void(Result<schema::Misclassifications>)>;

  Search(std::string run_id, Progress& node_progress, Callback callback)
      : run(std::move(run_id)), progress(node_progress), on_result(std::move(callback)) {}

  std::shared_ptr<void> orphaned_threads;  // destroyed last
  const std::string run;
  Progress& progress;  // outlives the thread
  std::mutex mutex;    // guards the members below
  std::condition_variable changed;
  Callback on_result;  // empty = cancelled
  bool returned = false;

  void advance() {
    const std::lock_guard lock(mutex);
    if (!on_result) throw Cancelled{};
  }
  void show(std::size_t done, std::size_t of) {
    const std::lock_guard lock(mutex);
    if (!on_result) return;
    progress.images_done = done;
    progress.images = of;
  }
  // call releases all of its memory before it returns.
  void execute(const std::function<Result<schema::Misclassifications>()>& call) {
    std::optional<Result<schema::Misclassifications>> result;
    try {
      result = call();
    } catch (const Cancelled&) {
    }
    show(0, 0);
    const std::lock_guard lock(mutex);
    if (on_result && result) on_result(*std::move(result));
    returned = true;
    changed.notify_all();
  }
};

// The run's record, if its model can be evaluated.
Result<RunRecord> MisclassificationSearch::record_of(const std::string& run) const {
  const std::string& node = context_.self.config.node;
  std::optional<RunRecord> record = context_.storage.store.recorded(run);
  if (record && !schema::is_authoritative(record->status.state))
    return Error{ErrorKind::kRefused, "run " + run + " is " + to_word(record->status.state) +
                                          "; a model is evaluated once its run is COMPLETED or STOPPED"};
  if (!record || !record->files.contains(kModelFile))
    return Error{ErrorKind::kNotFound,
                 node + " has no model of run " + run + " on its disk; ask one of its members: --address"};
  return *std::move(record);
}

void MisclassificationSearch::begin(std::uint64_t token, const schema::MisclassificationsRequest& request,
                                    const std::string& busy, std::uint64_t key) {
  const std::string& node = context_.self.config.node;
  if (!busy.empty())
    return control_.reply(token,
                          Error{ErrorKind::kRefused, node + " cannot evaluate a model now: " + busy +
                                                         "; ask again when that has ended, or ask another node"});
  const Result<RunRecord> record = record_of(request.run);
  if (!record) return control_.reply(token, record.error());
  const Result<schema::JobSpec> job = schema::parse_job(record->spec, "run.json");
  if (!job) return control_.reply(token, job.error());
  if (replays(*job))
    return control_.reply(
        token, Error{ErrorKind::kRefused, "run " + record->id + " replayed gradients: nothing can be evaluated"});
  token_ = token;
  key_ = key;
  until_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(schema::kMisclassificationsMs);
  search_ = std::make_shared<Search>(record->id, context_.news.progress,
                                     [&queue = queue_, key](Result<schema::Misclassifications> found) {
                                       queue.post(MisclassificationsFound{key, std::move(found)});
                                     });
  const auto call =
      [options = PreparationOptions{.job = *job,
                                    .data_dir = context_.data_dir_for(*job),
                                    .threads = threads_of(*record),
                                    .node = node,
                                    .memory_bytes = context_.self.config.memory_mib << 20,
                                    .memory_dir = context_.self.config.state_dir + "/data",
                                    .show_images = [search = search_](std::size_t done,
                                                                      std::size_t of) { search->show(done, of); }},
       record = *record, directory = context_.storage.store.directory(record->id), &compute = context_.machine.compute,
       search = search_] {
        return find_misclassifications(options, record, directory, compute, [&search] { search->advance(); });
      };
  context_.news.log.info("evaluating", {{"run", record->id}});
  try {
    std::thread([search = search_, call] { search->execute(call); }).detach();
  } catch (const std::system_error& error) {
    answer(Error{ErrorKind::kFailed, node + " cannot start a thread to evaluate on: " + error.what()});
  }
}

void MisclassificationSearch::on_result(MisclassificationsFound& event) {
  if (!search_ || event.search_key != key_) return;
  event.result ? answer(*std::move(event.result)) : answer(event.result.error());
}

void MisclassificationSearch::answer(schema::ReplyBody reply) {
  control_.reply(token_, std::move(reply));
  search_.reset();
}

void MisclassificationSearch::tick() {
  if (search_ && std::chrono::steady_clock::now() > until_)
    cancel({ErrorKind::kTimeout, context_.self.config.node + " has not evaluated the run within " +
                                     std::to_string(schema::kMisclassificationsMs / 60'000) +
                                     " minutes; ask a faster node"});
}

void MisclassificationSearch::cancel(const Error& why) {
  if (!search_) return;
  control_.reply(token_, why);
  abandon();
}

void MisclassificationSearch::abandon() {
  const std::shared_ptr<Search> search = std::exchange(search_, nullptr);
  if (!search) return;
  std::unique_lock lock(search->mutex);
  search->on_result = nullptr;
  search->progress.images = search->progress.images_done = 0;
  if (!search->changed.wait_for(lock, kEndsWithin, [&] { return search->returned; }))
    search->orphaned_threads = context_.news.progress.orphaned_threads.add(search->run);
}

}  // namespace tg::daemon

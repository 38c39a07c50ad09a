#include "daemon/node/mistake_search.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/run/fitting.h"
#include "daemon/run/mistakes.h"
#include "engine/resources/processors.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kEndsWithin{3};

// Thrown through what evaluates: nobody needs it any more.
struct GivenUp {};

// As the run's own, so that the bits are; but no more than there are.
std::uint64_t threads_of(const RunRecord& record) {
  return std::clamp<std::uint64_t>(record.own.threads, 1, static_cast<std::uint64_t>(engine::usable_processors()));
}

}  // namespace

// What the thread shares with the node; it may outlive the node's interest.
struct MistakeSearch::Search {
  using Found = std::function<void(Result<schema::Misclassifications>)>;

  Search(std::string its_run, Progress& its_progress, Found tell)
      : run(std::move(its_run)), progress(its_progress), found(std::move(tell)) {}

  std::shared_ptr<void> orphaned_threads;  // goes last
  const std::string run;
  Progress& progress;  // lives as long as the process
  std::mutex mutex;    // guards what follows
  std::condition_variable changed;
  Found found;  // empty: nobody listens
  bool returned = false;

  void advance() {
    const std::lock_guard lock(mutex);
    if (!found) throw GivenUp{};
  }
  void show(std::size_t done, std::size_t of) {
    const std::lock_guard lock(mutex);
    if (!found) return;
    progress.images_done = done;
    progress.images = of;
  }
  // call: leaves nothing of what it took.
  void carry_out(const std::function<Result<schema::Misclassifications>()>& call) {
    std::optional<Result<schema::Misclassifications>> result;
    try {
      result = call();
    } catch (const GivenUp&) {
    }
    show(0, 0);
    const std::lock_guard lock(mutex);
    if (found && result) found(*std::move(result));
    returned = true;
    changed.notify_all();
  }
};

// Its record, if its model can be evaluated.
Result<RunRecord> MistakeSearch::record_of(const std::string& run) const {
  const std::string& node = context_.self.config.node;
  std::optional<RunRecord> record = context_.disk.store.recorded(run);
  if (record && !schema::is_authoritative(record->status.state))
    return Error{ErrorKind::kRefused, "run " + run + " is " + to_word(record->status.state) +
                                          "; its model is evaluated when it is COMPLETED or STOPPED"};
  if (!record || !record->files.contains(kModelFile))
    return Error{ErrorKind::kNotFound,
                 node + " has no model of run " + run + " on its disk; ask one of its members: --address"};
  return *std::move(record);
}

void MistakeSearch::begin(std::uint64_t token, const schema::MisclassificationsRequest& request,
                          const std::string& busy, std::uint64_t key) {
  const std::string& node = context_.self.config.node;
  if (!busy.empty())
    return control_.reply(token, Error{ErrorKind::kRefused, node + " cannot evaluate a model now: " + busy +
                                                                "; ask again when that has ended, or another node"});
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
                                       queue.post(MistakesFound{key, std::move(found)});
                                     });
  const auto call = [options =
                         PreparationOptions{.job = *job,
                                            .data_dir = context_.data_dir_for(*job),
                                            .threads = threads_of(*record),
                                            .node = node,
                                            .memory_bytes = context_.self.config.memory_mib << 20,
                                            .memory_dir = context_.self.config.state_dir + "/data",
                                            .images = [search = search_](std::size_t done,
                                                                         std::size_t of) { search->show(done, of); }},
                     record = *record, directory = context_.disk.store.directory(record->id),
                     &compute = context_.machine.compute, search = search_] {
    return find_mistakes(options, record, directory, compute, [&search] { search->advance(); });
  };
  context_.news.log.info("evaluates", {{"run", record->id}});
  try {
    std::thread([search = search_, call] { search->carry_out(call); }).detach();
  } catch (const std::system_error& error) {
    answer(Error{ErrorKind::kFailed, node + " has no thread to evaluate on: " + error.what()});
  }
}

void MistakeSearch::on_found(MistakesFound& event) {
  if (!search_ || event.key != key_) return;
  event.result ? answer(*std::move(event.result)) : answer(event.result.error());
}

void MistakeSearch::answer(schema::ReplyBody reply) {
  control_.reply(token_, std::move(reply));
  search_.reset();
}

void MistakeSearch::tick() {
  if (search_ && std::chrono::steady_clock::now() > until_)
    give_way({ErrorKind::kTimeout, context_.self.config.node + " has not evaluated the run within " +
                                       std::to_string(schema::kMisclassificationsMs / 60'000) +
                                       " minutes; ask a faster node"});
}

void MistakeSearch::give_way(const Error& why) {
  if (!search_) return;
  control_.reply(token_, why);
  abandon();
}

void MistakeSearch::abandon() {
  const std::shared_ptr<Search> search = std::exchange(search_, nullptr);
  if (!search) return;
  std::unique_lock lock(search->mutex);
  search->found = nullptr;
  search->progress.images = search->progress.images_done = 0;
  if (!search->changed.wait_for(lock, kEndsWithin, [&] { return search->returned; }))
    search->orphaned_threads = context_.news.progress.orphaned_threads.add(search->run);
}

}  // namespace tg::daemon

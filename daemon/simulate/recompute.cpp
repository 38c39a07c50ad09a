#include "daemon/simulate/recompute.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/run/prepare.h"
#include "daemon/simulate/members_memory.h"
#include "daemon/simulate/recorded_run.h"
#include "daemon/simulate/share_engines.h"
#include "daemon/simulate/simulated_view.h"
#include "daemon/store/run_files.h"
#include "engine/compute_device.h"
#include "engine/resources/processors.h"
#include "kernels/base/hex.h"
#include "kernels/host_memory_space.h"
#include "kernels/kernels.h"
#include "schema/text.h"
#include "schema/version.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kSayStepEvery{10};
constexpr const char* kHere = "this machine";

std::string counted(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : std::string(noun).ends_with('s') ? "es" : "s");
}

// "NVIDIA H100 80GB HBM3 (device 0)" without its number.
std::string device_kind(const std::string& name) { return name.substr(0, name.find(" (device")); }

Error not_here(const std::string& message) { return {ErrorKind::kRefused, message}; }

class Recomputation {
 public:
  Recomputation(const RecomputeOptions& options, const RecordedRun& run, const engine::ComputeDevice& compute,
                const kernels::CodecKernels& codec, const std::function<void(const std::string&)>& say)
      : options_(options), run_(run), compute_(compute), codec_(codec), say_(say) {
    nodes_.resize(run.names.size());
    choice_.exchange = from_word<schema::ExchangeKind>(run.record.status.exchange).value_or(choice_.exchange);
    choice_.window_bytes = kSimulatedWindowBytes;
    choice_.coding = from_word<schema::Coding>(run.record.status.coding).value_or(choice_.coding);
    global_batch_ = run.record.global_batch != 0 ? run.record.global_batch
                                                 : schema::resolved_global_batch(run.job, run.trained.size());
  }

  Status compute() {
    if (Status prepared = prepare_all(); !prepared) return prepared;
    for (const Leg& leg : run_.legs)
      if (Status done = compute_leg(leg); !done) return done;
    return compare_evaluation();
  }
  std::uint64_t digest() const { return digest_; }
  std::uint64_t losses() const { return losses_; }  // compared

 private:
  Seat seat_of(const std::string& node) const {
    return Seat(static_cast<std::size_t>(std::ranges::find(run_.names, node) - run_.names.begin()));
  }
  std::uint64_t threads_of(const std::string& node) const {
    if (options_.threads) return *options_.threads;
    const auto known = run_.members.find(node);
    return std::max<std::uint64_t>(known == run_.members.end() ? run_.record.own.threads : known->second.threads, 1);
  }
  Per<Rank, std::uint64_t> threads_of(const Leg& leg) const {
    Per<Rank, std::uint64_t> threads;
    for (const std::string& node : leg.interval.members) threads.push_back(threads_of(node));
    return threads;
  }

  Status prepare_all();
  Status check_recorded(const Prepared& prepared) const;
  Status check_memory(const PreparedView& first) const;
  Status check_builds(const Leg& leg) const;
  Status enter(const Leg& leg);
  Status compute_leg(const Leg& leg);
  void committed(const Member::Committed& committed);
  Status difference(const Leg& leg) const;
  Status compare_evaluation() const;

  const RecomputeOptions& options_;
  const RecordedRun& run_;
  const engine::ComputeDevice& compute_;
  const kernels::CodecKernels& codec_;
  const std::function<void(const std::string&)>& say_;
  schema::Commit choice_;
  std::uint64_t global_batch_ = 0;
  schema::FramePool pool_;
  std::shared_ptr<const Prepared> prepared_;
  std::unique_ptr<ShareEngines> engines_;
  Per<Seat, SimulatedNode> nodes_;
  std::vector<Seat> holders_;                    // nodes that hold the newest state
  std::uint64_t digest_ = 0;                     // that state's digest
  std::vector<Member::Evaluation> evaluations_;  // at the step whose evaluation is recorded
  struct OtherLoss {
    std::uint64_t step = 0;
    double recorded = 0, computed = 0;
  };
  std::optional<OtherLoss> other_loss_;  // the first
  std::uint64_t losses_ = 0;             // compared
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

// As the first member does, and then what is to be equal.
Status Recomputation::prepare_all() {
  const Leg& first = run_.legs.front();
  PreparationOptions options;
  options.job = first.job;
  options.job.threads = 0;                 // as many as are asked for, whatever the processors
  options.job.keep = schema::Keep::kLast;  // the state is the same
  options.data_dir = options_.data_dir.value_or(run_.job.data_dir);
  options.threads = threads_of(first.interval.members.front());
  options.node = kHere;
  options.log_progress = [this](const std::string& line) { say_("reading data: " + line); };
  const LocalShare part{Rank(0), Per<Rank, std::uint16_t>(first.interval.weights.begin(), first.interval.weights.end()),
                        global_batch_};
  Result<TrainingKit> kit = prepare(options, part, compute_, [] {});
  if (!kit) return kit.error();
  prepared_ = kit->prepared;
  if (Status same = check_recorded(*prepared_); !same) return same;
  if (Status fits = check_memory(*kit->view); !fits) return fits;
  const Seat seat = seat_of(first.interval.members.front());
  nodes_[seat] = {prepared_->replica, std::move(kit->gradients)};
  holders_ = {seat};
  engines_ = std::make_unique<ShareEngines>(options, *std::move(kit), compute_);
  return {};
}

Status Recomputation::check_recorded(const Prepared& prepared) const {
  const RunRecord& record = run_.record;
  const auto differs = [](const std::string& what, std::uint64_t then, std::uint64_t now, const std::string& advice) {
    return not_here(what + " not those of the run: " + hex_digest(then) + " then, " + hex_digest(now) + " here; " +
                    advice);
  };
  if (prepared.data_hash != record.data_hash)
    return differs("the data are", record.data_hash, prepared.data_hash,
                   "give the folder of the files that it was trained on with --data-dir");
  if (prepared.model_hash != record.model_hash)
    return differs("the layers of " + std::string(to_word(run_.job.model)) + " are", record.model_hash,
                   prepared.model_hash, "recompute with the tgd that trained it, " + record.build);
  if (prepared.initial_digest != record.initial_digest)
    return differs("the parameters that it began with are", record.initial_digest, prepared.initial_digest,
                   "recompute with the tgd that trained it, " + record.build);
  return {};
}

// The leg with the most members.
Status Recomputation::check_memory(const PreparedView& first) const {
  const Leg* largest = &run_.legs.front();
  for (const Leg& leg : run_.legs)
    if (leg.interval.members.size() > largest->interval.members.size()) largest = &leg;
  const Per<Rank, std::uint16_t> weights(largest->interval.weights.begin(), largest->interval.weights.end());
  return check_memory_of_members({largest->job, *prepared_, first, weights, global_batch_, choice_}, compute_, say_);
}

// What members said of their engines; of an interval in an earlier lineage only its line does.
Status Recomputation::check_builds(const Leg& leg) const {
  const bool newest = leg.interval.lineage == run_.record.status.lineage;
  const auto compared = [this](const std::string& build) {
    return options_.threads ? build.substr(0, build.rfind(", ")) : build;  // threads come last
  };
  for (std::size_t i = 0; i < leg.interval.members.size(); ++i) {
    const std::string& node = leg.interval.members[i];
    std::string then;
    if (const auto said = leg.interval.builds.find(node); said != leg.interval.builds.end()) then = said->second;
    if (const auto said = run_.members.find(node); newest && said != run_.members.end())
      then = said->second.engine_build;
    const std::string here = engines_->engine_of(Rank(i)).build();
    if (then.empty() || compared(then) == compared(here)) continue;
    return not_here(node + " computed steps " + std::to_string(leg.first + 1) + " to " + std::to_string(leg.last) +
                    " with " + then + ", and here it is " + here +
                    ": the last bits may differ; recompute with that build, on such a processor or device");
  }
  return {};
}

// The members of the leg hold the state that it begins with.
Status Recomputation::enter(const Leg& leg) {
  std::vector<Seat> members;
  for (const std::string& node : leg.interval.members) members.push_back(seat_of(node));
  for (const Seat seat : members) {
    if (std::ranges::count(holders_, seat) > 0) continue;
    Result<SimulatedNode> copy = copy_of(nodes_[holders_.front()], compute_.space(), prepared_->model, run_.job.seed);
    if (!copy) return copy.error();
    nodes_[seat] = *std::move(copy);
  }
  for (const Seat seat : holders_)
    if (std::ranges::count(members, seat) == 0) nodes_[seat] = {};
  holders_ = members;
  return {};
}

void Recomputation::committed(const Member::Committed& committed) {
  const double loss = committed.loss_sum / static_cast<double>(global_batch_);
  if (const auto recorded = run_.losses.find(committed.step); recorded != run_.losses.end()) {
    ++losses_;
    const bool same = recorded->second == loss || (std::isnan(recorded->second) && !std::isfinite(loss));
    if (!same && !other_loss_) other_loss_ = {committed.step, recorded->second, loss};
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - said_ < kSayStepEvery) return;
  said_ = now;
  say_("step " + std::to_string(committed.step) + " of " + std::to_string(run_.legs.back().last));
}

Status Recomputation::compute_leg(const Leg& leg) {
  if (Status entered = enter(leg); !entered) return entered;
  const Per<Rank, std::uint16_t> weights(leg.interval.weights.begin(), leg.interval.weights.end());
  if (Status fits = engines_->fit(leg.job, weights, global_batch_, leg.first_weights, threads_of(leg), Step(leg.first));
      !fits)
    return fits;
  if (Status same = check_builds(leg); !same) return same;
  Per<Rank, SimulatedNode*> members;
  for (const Seat seat : holders_) members.push_back(&nodes_[seat]);
  const bool has_test_data = !prepared_->data->test.labels.empty();
  const bool due = leg.first > 0 && leg.job.evaluate_every > 0 && leg.first % leg.job.evaluate_every == 0;
  SimulatedView view({.view = View(leg.interval.view, holders_, weights),
                      .names = Per<Seat, std::string>(run_.names.begin(), run_.names.end()),
                      .job = leg.job,
                      .choice = choice_,
                      .global_batch = global_batch_,
                      .has_test_data = has_test_data,
                      .first = Step(leg.first),
                      .last = Step(leg.last),
                      .evaluates_first = due},
                     {prepared_->model, compute_.space(), codec_, pool_, *engines_}, members,
                     {.committed = [this](const Member::Committed& one) { committed(one); },
                      .evaluated =
                          [this](const Member::Evaluation& one) {
                            if (one.step == run_.record.status.evaluation_step) evaluations_.push_back(one);
                          }});
  if (Status done = view.run(); !done) return done;
  digest_ = Replica::combine(nodes_[holders_.front()].replica->segment_digests());
  if ((leg.digest != 0 && leg.digest != digest_) || other_loss_) return difference(leg);
  say_("steps " + std::to_string(leg.first + 1) + " to " + std::to_string(leg.last) + " of " +
       schema::joined(leg.interval.members) + ": digest " + hex_digest(digest_) +
       (leg.digest != 0 ? ", as recorded" : ""));
  return {};
}

Status Recomputation::difference(const Leg& leg) const {
  std::string text = "steps " + std::to_string(leg.first + 1) + " to " + std::to_string(leg.last) + " of " +
                     schema::joined(leg.interval.members) + ": digest " + hex_digest(digest_);
  text += leg.digest == 0         ? ""
          : leg.digest == digest_ ? ", as recorded"
                                  : ", and " + hex_digest(leg.digest) + " is recorded";
  char losses[96];
  if (other_loss_) {
    std::snprintf(losses, sizeof losses, ": %.17g recorded, %.17g computed", other_loss_->recorded,
                  other_loss_->computed);
    text += "; the first loss that differs is that of step " + std::to_string(other_loss_->step) + losses;
  } else {
    const auto compared = std::distance(run_.losses.upper_bound(leg.first), run_.losses.upper_bound(leg.last));
    text += "; " + std::to_string(compared) + " of " + counted(leg.last - leg.first, "loss") + " compared, as recorded";
  }
  return Error{ErrorKind::kFailed, text};
}

// The last evaluation, if it was computed here too. Where a view ended with that step the next one may have evaluated
// it as well, in other parts, and its sum may differ in the last bit: the first result counted, and whose that was is
// not recorded.
Status Recomputation::compare_evaluation() const {
  const schema::RunStatus& recorded = run_.record.status;
  if (!recorded.evaluated) return {};
  const std::string step = std::to_string(recorded.evaluation_step);
  if (evaluations_.empty()) {
    say_("the evaluation of step " + step + " is not compared: no step that led to the end has it");
    return {};
  }
  char text[200];
  for (const Member::Evaluation& one : evaluations_) {
    const auto total = static_cast<double>(one.counts.total);
    const double accuracy = static_cast<double>(one.counts.correct) / total, loss = one.counts.loss_sum / total;
    if (accuracy == recorded.evaluation_accuracy && loss == recorded.evaluation_loss) {
      std::snprintf(text, sizeof text, ": accuracy %.4f, loss %.4f, as recorded", accuracy, loss);
      say_("evaluation of step " + step + text);
      return {};
    }
    std::snprintf(text, sizeof text, ": accuracy %.17g and loss %.17g, and %.17g and %.17g are recorded", accuracy,
                  loss, recorded.evaluation_accuracy, recorded.evaluation_loss);
  }
  return Error{ErrorKind::kFailed, "evaluation of step " + step + text};
}

// --- before anything is read ---

// What no engine that can be made here would be.
Status check_members(const RecomputeOptions& options, const RecordedRun& run) {
  const MemberRecord& own = run.record.own;
  for (const auto& [node, member] : run.members) {
    if (member.engine != own.engine || device_kind(member.device) != device_kind(own.device) ||
        member.math != own.math) {
      const auto computed = [](const MemberRecord& one) {
        return one.engine + (one.device.empty() ? "" : " on " + device_kind(one.device)) + ", " + one.math;
      };
      return not_here(node + " computed with " + computed(member) + ", and " + run.record.node + " with " +
                      computed(own) + ": one process has one engine, so this run cannot be recomputed");
    }
    const auto processors = static_cast<std::uint64_t>(engine::usable_processors());
    if (!options.threads && member.threads > processors)
      return not_here(node + " computed with " + counted(member.threads, "thread") + ", and this machine has " +
                      counted(processors, "processor") +
                      ": recompute on one with as many, or accept other last bits with --threads " +
                      std::to_string(processors));
    if (run.job.compute == schema::Compute::kTrain && own.device.empty() && !member.engine_build.empty() &&
        !member.engine_build.starts_with(engine::cpu_library() + ","))
      return not_here(node + " computed with " + member.engine_build + ", and here it is " + engine::cpu_library() +
                      ": the last bits may differ; recompute with that build, on such a processor");
  }
  return {};
}

Result<engine::ComputeDevice> device_of(const RecordedRun& run, kernels::MemorySpace& host) {
  const MemberRecord& own = run.record.own;
  if (own.device.empty()) return engine::ComputeDevice(host);
  const Math math = from_word<Math>(own.math).value_or(Math::kFp32);
  Result<engine::ComputeDevice> device =
      engine::ComputeDevice::choose({EngineKind::kCuda, {0, math}}, host, schema::build_id());
  if (!device)
    return not_here(run.record.node + " computed on " + device_kind(own.device) +
                    ", and there is none here: " + device.error().message);
  if (device_kind(device->name()) != device_kind(own.device))
    return not_here(run.record.node + " computed on " + device_kind(own.device) + ", and here it is " +
                    device_kind(device->name()) + ": recompute on such a machine");
  return device;
}

void say_what_is_not_known(const RecordedRun& run, const std::function<void(const std::string&)>& say) {
  std::vector<std::string> unknown;
  for (const std::string& node : run.trained)
    if (!run.members.contains(node)) unknown.push_back(node);
  if (!unknown.empty())
    say("what " + schema::joined(unknown) + " computed with is not recorded here; taken to be what " + run.record.node +
        " computed with");
}

}  // namespace

Status recompute(const RecomputeOptions& options, const std::function<void(const std::string&)>& say) {
  const Result<RecordedRun> run = read_recorded_run(options.directory);
  if (!run) return run.error();
  if (const Status here = check_members(options, *run); !here) return here;
  const Result<const kernels::Kernels*> kernels = kernels::select("auto");
  if (!kernels) return kernels.error();
  kernels::HostMemorySpace host(**kernels);
  const Result<engine::ComputeDevice> compute = device_of(*run, host);
  if (!compute) return compute.error();
  say("run " + run->record.id + ": " + to_word(run->job.model) + " on " + to_word(run->job.data) + ", " +
      counted(run->legs.back().last, "step") + ", " + to_word(run->record.status.state));
  say_what_is_not_known(*run, say);
  try {
    Recomputation again(options, *run, *compute, **kernels, say);
    if (Status same = again.compute(); !same) return same;
    const std::string what = "recomputed " + counted(run->legs.back().last, "step") + " of " +
                             counted(run->trained.size(), "member") + ": digest " + hex_digest(again.digest()) +
                             ", as recorded; ";
    if (again.losses() == 0)
      return Error{ErrorKind::kFailed, what + "no loss was compared: " + options.directory + "/" + kMetricsFile +
                                           " has none of its steps; fetch the run again"};
    say(what + std::to_string(again.losses()) + " of " + counted(run->legs.back().last, "loss") + " compared");
    return {};
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kRefused, "this machine has not enough memory for all members"};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kRunFailed, std::string("it cannot be computed: ") + error.what()};
  }
}

}  // namespace tg::daemon

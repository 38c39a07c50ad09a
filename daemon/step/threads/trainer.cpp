#include "daemon/step/threads/trainer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "daemon/membership/choose_exchange.h"
#include "daemon/run/memory_check.h"
#include "daemon/step/job_plan.h"
#include "daemon/step/worker.h"
#include "engine/optimizer.h"
#include "engine/replay/replay_engine.h"
#include "kernels/base/check.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{3};
constexpr int kEvaluationBatch = 250;
constexpr int kProbes = 3;  // timed forward + backward passes; the median counts

struct Train {
  std::uint64_t step;
  const float* parameters;
  std::vector<std::size_t> first_segments;  // of each bucket; a copy: the thread may outlive the run
};
struct Evaluate {
  std::uint64_t step;
};
struct Quit {};
using Order = std::variant<Train, Evaluate, Quit>;

// At the least, whatever exchange will be chosen.
std::uint64_t least_bytes(const schema::JobSpec& job, const engine::SegmentTable& segments, std::size_t members,
                          std::size_t workers) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const schema::ExchangeKind exchange : {schema::ExchangeKind::kDirect, schema::ExchangeKind::kSharded}) {
    for (const schema::Coding coding : {schema::Coding::kRaw, schema::Coding::kEntropy}) {
      if (!allowed(asked_of(job), exchange, coding)) continue;
      const schema::Commit choice{exchange, coding, schema::kLeastWindowBytes};
      least = std::min(least, member_bytes(job, segments, plans_of(job, segments, members, choice), workers));
    }
  }
  return least;
}

struct Abandoned {};  // thrown through the engine: the run is over, nobody waits for this forward pass

}  // namespace

struct Trainer::State {
  State(Options o, const kernels::Kernels& k, Progress& p, const Fault& f, std::shared_ptr<Timeline> t, Hooks h)
      : options(std::move(o)), kernels(k), progress(p), fault(f), timeline(std::move(t)), hooks(std::move(h)) {}

  const Options options;
  const kernels::Kernels& kernels;
  Progress& progress;
  const Fault fault;
  const std::shared_ptr<Timeline> timeline;
  Hooks hooks;

  std::mutex mutex;  // guards order, silent, returned, segments_ready
  std::condition_variable changed;
  std::optional<Order> order;
  std::atomic<bool> silent{false};   // nobody listens any more; written under the mutex
  bool returned = false;             // the thread is about to end
  std::vector<bool> segments_ready;  // of the parameters of the present order

  // compute thread, after preparing
  std::shared_ptr<Prepared> prepared;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<engine::BatchSource> batches;  // empty when gradients are replayed: no data then
  AlignedArray<float> gradients;
  engine::Batch evaluation_batch;
  const engine::Batch no_batch;
  float inside_weight_decay = 0;

  void run();
  Result<std::shared_ptr<const Prepared>> prepare();
  Status load_data(Prepared& result) const;
  Result<std::unique_ptr<engine::Engine>> make_engine(const engine::Model& model, int batch) const;
  void probe(Prepared& result, std::uint64_t global_batch, const engine::Share& share);
  void train(const Train& order_);
  void wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last);
  void evaluate(const Evaluate& order_);
  engine::Share share() const;
  std::uint64_t global_batch() const { return schema::resolved_global_batch(options.job, options.members); }
  bool replays() const { return options.job.compute == "replay"; }
  // Hooks are called under no lock, but never after the trainer was destroyed.
  template <class Call>
  void tell(Call call) {
    const std::lock_guard lock(mutex);
    if (!silent) call();
  }
  // An abandoned thread says nothing of its progress: that is the next run's by now.
  void advance() {
    if (!silent) ++progress.count;
  }
  void set_phase(schema::Phase phase) {
    if (!silent) progress.phase = phase;
  }
  void enter(schema::Phase phase, std::uint64_t step) {
    set_phase(phase);
    advance();
    fault.reached(phase, step);
  }
  std::optional<Order> wait_for_order() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return order.has_value(); });
    return std::exchange(order, std::nullopt);
  }
};

Trainer::Trainer(Options options, const kernels::Kernels& kernels, Progress& progress, const Fault& fault,
                 std::shared_ptr<Timeline> timeline, Hooks hooks)
    : state_(std::make_shared<State>(std::move(options), kernels, progress, fault, std::move(timeline),
                                     std::move(hooks))) {
  std::thread([state = state_] { state->run(); }).detach();
}

Trainer::~Trainer() {
  std::unique_lock lock(state_->mutex);
  state_->silent = true;
  state_->order = Quit{};
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kPatience, [this] { return state_->returned; });
}

void Trainer::train(std::uint64_t step, const Plan& plan, const float* parameters, bool early) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  Train order{step, parameters, {}};
  for (const BucketPlan& bucket : plan.buckets) order.first_segments.push_back(bucket.first_segment);
  state_->order = std::move(order);
  state_->segments_ready.assign(plan.bucket_of_segment.size(), !early);
  state_->changed.notify_all();
}

void Trainer::segment_ready(std::size_t segment) {
  const std::lock_guard lock(state_->mutex);
  state_->segments_ready[segment] = true;
  state_->changed.notify_all();
}

void Trainer::evaluate(std::uint64_t step) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  state_->order = Evaluate{step};
  state_->changed.notify_all();
}

std::span<const float> Trainer::gradients() const { return state_->gradients.span(); }

// --- compute thread ---

void Trainer::State::run() {
  try {
    Result<std::shared_ptr<const Prepared>> result = prepare();
    const bool ok =
        result.ok();  // the phase stays `prepare` until the run begins: waiting for slower members is no stall
    tell([&] { hooks.prepared(std::move(result)); });
    while (ok) {
      const std::optional<Order> next = wait_for_order();
      if (const auto* train_order = std::get_if<Train>(&*next))
        train(*train_order);
      else if (const auto* evaluate_order = std::get_if<Evaluate>(&*next))
        evaluate(*evaluate_order);
      else
        break;
    }
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    tell([&] { hooks.failed(error.what()); });
  }
  batches.reset();
  engine.reset();
  const std::lock_guard lock(mutex);
  returned = true;
  changed.notify_all();
}

engine::Share Trainer::State::share() const {
  return engine::share_of(global_batch(), static_cast<int>(options.rank), static_cast<int>(options.members));
}

Result<std::shared_ptr<const Prepared>> Trainer::State::prepare() {
  enter(schema::Phase::kPrepare, 0);
  const schema::JobSpec& job = options.job;
  auto result = std::make_shared<Prepared>();
  Result<engine::Model> model = engine::make_model(job.model);
  if (!model.ok()) return model.error();
  result->model = std::move(model).value();
  if (!replays() && !result->model.trainable())
    return Error{ErrorKind::kInvalidJob,
                 "model = " + job.model +
                     " cannot be trained yet, only its gradients can be replayed; set compute = "
                     "replay, or another model"};
  if (const Status loaded = load_data(*result); !loaded.ok())
    return Error{loaded.error().kind, options.node + ": " + loaded.error().message};
  advance();
  const engine::Share part = share();
  if ((!replays() && result->data->train.count() == 0) || part.count == 0)
    return Error{ErrorKind::kInvalidJob, "the global batch of " + std::to_string(global_batch()) +
                                             " does not reach all " + std::to_string(options.members) +
                                             " members; raise global-batch"};
  Result<std::unique_ptr<engine::Engine>> made = make_engine(result->model, part.count);
  if (!made.ok()) return Error{made.error().kind, options.node + ": " + made.error().message};
  engine = std::move(made).value();
  const engine::SegmentTable& segments = result->model.segments;
  const std::uint64_t least = least_bytes(job, segments, options.members, workers_for(options.threads));
  if (const Status fits = check_memory(least, 0, options.memory_bytes); !fits.ok())
    return Error{fits.error().kind, options.node + ": " + fits.error().message};
  result->replica =
      std::make_shared<Replica>(segments, engine::slot_count(optimizer_of(job).kind), job.seed, keeps_average(job));
  result->initial_digest = Replica::combine(result->replica->segment_digests(kernels));
  result->data_hash = result->data->hash;
  result->model_hash = segments.hash();
  result->threads = options.threads;
  result->engine_build = engine->build();
  gradients = AlignedArray<float>(segments.padded_count());
  if (job.weight_decay_path == "inside") inside_weight_decay = static_cast<float>(job.weight_decay);
  prepared = result;
  probe(*result, global_batch(), part);
  if (replays()) return std::shared_ptr<const Prepared>(result);
  batches = std::make_unique<engine::BatchSource>(
      result->data, engine::BatchSource::Options{job.seed, global_batch(), part, 0, job.steps, result->model.input});
  return std::shared_ptr<const Prepared>(result);
}

Status Trainer::State::load_data(Prepared& result) const {
  const schema::JobSpec& job = options.job;
  if (replays()) {
    result.data = std::make_shared<const engine::Dataset>();  // none, of which nothing is asked
    return {};
  }
  Result<std::shared_ptr<const engine::Dataset>> data =
      engine::load_dataset({job.data, options.data_dir, job.data_seed, static_cast<std::size_t>(job.data_train),
                            static_cast<std::size_t>(job.data_test)});
  if (!data.ok()) return data.error();
  result.data = std::move(data).value();
  return engine::check_input(*result.data, result.model.input, result.model.classes);
}

// The one place that chooses what computes.
Result<std::unique_ptr<engine::Engine>> Trainer::State::make_engine(const engine::Model& model, int batch) const {
  const schema::JobSpec& job = options.job;
  if (replays())
    return engine::make_replay_engine(model, {job.seed, static_cast<std::uint32_t>(options.rank), job.replay_zeros,
                                              job.replay_gradients == "gaussian" ? "" : job.replay_gradients});
  return engine::make_cpu_engine(model, {static_cast<int>(options.threads), batch, kEvaluationBatch});
}

// Also makes the libraries compile their code before the first step is timed; gradients that are replayed are made
// here.
void Trainer::State::probe(Prepared& result, std::uint64_t batch_size, const engine::Share& part) {
  engine::Batch batch;
  batch.count = part.count;
  if (!replays()) {
    engine::SampleStream stream(options.job.seed, result.data->train.count());
    engine::fill_training_batch(*result.data, stream, options.job.seed, part.first, result.model.input, batch);
  }
  std::vector<double> seconds;
  for (int i = 0; i <= kProbes; ++i) {
    const Clock::time_point start = Clock::now();
    engine->forward(result.replica->parameters().data(), batch);
    engine->backward(static_cast<float>(static_cast<double>(options.members) / static_cast<double>(batch_size)),
                     gradients.data(), [](std::size_t, std::size_t) {});
    if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    advance();
  }
  result.step_seconds = median(std::move(seconds));
}

void Trainer::State::train(const Train& order_) {
  const engine::SegmentTable& segments = prepared->model.segments;
  const std::span<const float> parameters(order_.parameters, segments.padded_count());
  enter(schema::Phase::kForward, order_.step);
  const engine::Batch& batch = batches ? batches->next() : no_batch;
  double loss_sum = 0;
  {
    const TimelineSpan span(*timeline, Timeline::Track::kCompute, "forward", order_.step);
    loss_sum = engine->forward(parameters.data(), batch, [this, &order_](std::size_t first, std::size_t last) {
      wait_for_segments(order_.step, first, last);
    });
  }
  enter(schema::Phase::kBackward, order_.step);
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "backward", order_.step);
  // Each member's sum is weighted by N/B before anything is measured: the mean of the N gradients is the batch's
  // gradient.
  const double factor = static_cast<double>(options.members) / static_cast<double>(global_batch());
  std::size_t bucket = 0;
  std::size_t complete_from = segments.size();  // segments [complete_from, size) are complete
  engine->backward(static_cast<float>(factor), gradients.data(), [&](std::size_t first, std::size_t last) {
    TG_CHECK(last == complete_from, first, last, complete_from);
    complete_from = first;
    for (std::size_t s = first; s < last; ++s) {
      if (inside_weight_decay == 0 || !segments[s].decays) continue;
      const std::size_t begin = segments[s].offset, count = segments[s].padded_count();
      kernels.add_scaled(parameters.subspan(begin, count), inside_weight_decay, gradients.span().subspan(begin, count));
    }
    advance();
    while (bucket < order_.first_segments.size() && order_.first_segments[bucket] >= complete_from) {
      if (timeline->on()) {
        const auto now = Timeline::Clock::now();
        timeline->add(Timeline::Track::kCompute, "ready", order_.step, now, now, {static_cast<std::int64_t>(bucket)});
      }
      tell([&] { hooks.bucket_ready(order_.step, bucket, loss_sum); });
      ++bucket;
    }
  });
}

// The rest of the step before is on its way: a wait for peers, whose deadline is theirs.
void Trainer::State::wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last) {
  std::unique_lock lock(mutex);
  const auto ready = [&] {
    return std::all_of(segments_ready.begin() + static_cast<std::ptrdiff_t>(first),
                       segments_ready.begin() + static_cast<std::ptrdiff_t>(last), [](bool one) { return one; });
  };
  if (ready()) return;
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "wait", step);
  changed.wait(lock, [&] { return silent || ready(); });
  if (silent) throw Abandoned{};
  set_phase(schema::Phase::kForward);
}

void Trainer::State::evaluate(const Evaluate& order_) {
  enter(schema::Phase::kEvaluate, order_.step);
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "evaluate", order_.step);
  const engine::Share part =
      engine::share_of(prepared->data->test.count(), static_cast<int>(options.rank), static_cast<int>(options.members));
  engine::EvaluationCounts counts;
  for (int done = 0; done < part.count;) {
    evaluation_batch.count = std::min(kEvaluationBatch, part.count - done);
    engine::fill_evaluation_batch(*prepared->data,
                                  static_cast<std::size_t>(part.first) + static_cast<std::size_t>(done),
                                  prepared->model.input, evaluation_batch);
    const engine::EvaluationCounts some = engine->evaluate(prepared->replica->average().data(), evaluation_batch);
    counts.correct += some.correct;
    counts.total += some.total;
    counts.loss_sum += some.loss_sum;
    done += evaluation_batch.count;
    advance();
  }
  set_phase(schema::Phase::kIdle);
  tell([&] { hooks.evaluated(order_.step, counts); });
}

}  // namespace tg::daemon

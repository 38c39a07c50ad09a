#include "daemon/step/threads/trainer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kPatience{3};

struct Train {
  std::uint64_t step;
  kernels::ConstFloats parameters;
  std::vector<std::size_t> first_segments;  // of each bucket; a copy: the thread may outlive the run
};
struct Evaluate {
  std::uint64_t step;
};
struct Quit {};
using Order = std::variant<Train, Evaluate, Quit>;

class Stopwatch {
 public:
  double restart() {  // seconds since the last one
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

struct Abandoned {};  // thrown through what makes the kit and the engine: the run is over, nobody needs this

}  // namespace

struct Trainer::State {
  State(Options o, Prepare make_kit, Progress& p, const FaultInjection& f, std::shared_ptr<Timeline> t, Hooks h)
      : options(std::move(o)),
        prepare(std::move(make_kit)),
        progress(p),
        fault(f),
        timeline(std::move(t)),
        hooks(std::move(h)) {}

  std::shared_ptr<void> left_behind;  // goes last, when everything that it took is free
  const Options options;
  const Prepare prepare;
  Progress& progress;
  const FaultInjection fault;
  const std::shared_ptr<Timeline> timeline;
  Hooks hooks;

  std::mutex mutex;  // guards order, silent, returned, segments_ready
  std::condition_variable changed;
  std::optional<Order> order;
  std::atomic<bool> silent{false};   // nobody listens any more; written under the mutex
  bool returned = false;             // the thread is about to end
  std::vector<bool> segments_ready;  // of the parameters of the present order

  // compute thread, after preparing
  TrainingKit kit;
  engine::Batch evaluation_batch;
  AlignedArray<float> measured;  // by batch normalizations
  double waited_seconds = 0;     // for parameters, in this forward pass
  double data_wait_seconds = 0;  // for samples, in all steps so far
  const engine::Batch no_batch;

  void run();
  bool make_kit();
  void train(const Train& asked);
  bool prefetch();
  void wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last);
  void evaluate(const Evaluate& asked);
  void add_weight_decay(kernels::ConstFloats parameters, std::size_t first, std::size_t last);
  // Hooks are called under the lock, so never after the trainer was destroyed.
  template <class Call>
  void tell(Call call) {
    const std::lock_guard lock(mutex);
    if (!silent) call();
  }
  // An abandoned thread ends here; the progress belongs to the next run by now.
  void advance() {
    if (silent) throw Abandoned{};
    ++progress.count;
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

Trainer::Trainer(Options options, Prepare prepare, Progress& progress, const FaultInjection& fault,
                 std::shared_ptr<Timeline> timeline, Hooks hooks)
    : state_(std::make_shared<State>(std::move(options), std::move(prepare), progress, fault, std::move(timeline),
                                     std::move(hooks))) {
  std::thread([state = state_] { state->run(); }).detach();
}

Trainer::~Trainer() {
  TrainingKit kit;  // goes now, if the thread is done with it
  std::unique_lock lock(state_->mutex);
  state_->silent = true;
  state_->order = Quit{};
  state_->changed.notify_all();
  if (state_->changed.wait_for(lock, kPatience, [this] { return state_->returned; }))
    kit = std::move(state_->kit);
  else
    state_->left_behind = state_->progress.left_behind.add(state_->options.run);
}

void Trainer::train(std::uint64_t step, const Layout& layout, kernels::ConstFloats parameters, bool early) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  Train order{step, parameters, {}};
  for (const BucketLayout& bucket : layout.buckets) order.first_segments.push_back(bucket.first_segment);
  state_->order = std::move(order);
  state_->segments_ready.assign(layout.bucket_of_segment.size(), !early);
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

kernels::ConstFloats Trainer::gradients() const { return std::as_const(state_->kit.gradients).floats(); }

// --- compute thread ---

void Trainer::State::run() {
  try {
    // The phase stays `prepare` until the run begins: waiting for slower members is no stall.
    const bool prepared = make_kit();
    while (prepared) {
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
    tell([&] { hooks.happened(EngineFailed{error.what()}); });
  }
  kit.engine.reset();
  kit.batches.reset();
  const std::lock_guard lock(mutex);
  returned = true;
  changed.notify_all();
}

bool Trainer::State::make_kit() {
  enter(schema::Phase::kPrepare, 0);
  Result<TrainingKit> made = prepare([this] { advance(); });
  if (!made) {
    tell([&] { hooks.prepared(made.error()); });
    return false;
  }
  kit = std::move(made).value();
  measured = AlignedArray<float>(kit.prepared->model.statistics.padded_count());
  tell([&] { hooks.prepared(kit.view); });
  return true;
}

void Trainer::State::train(const Train& asked) {
  enter(schema::Phase::kForward, asked.step);
  const engine::Batch& batch = kit.batches ? kit.batches->next() : no_batch;
  const double data_waits = kit.batches ? kit.batches->waited_seconds() : 0;
  const double data_seconds = data_waits - std::exchange(data_wait_seconds, data_waits);
  GradientReady ready{asked.step};
  Stopwatch watch;
  waited_seconds = 0;
  {
    const TimelineSpan span(*timeline, Timeline::Track::kCompute, "forward", asked.step);
    ready.loss_sum = kit.engine->forward(
        asked.parameters.address(), batch,
        [this, &asked](std::size_t first, std::size_t last) { wait_for_segments(asked.step, first, last); });
  }
  if (measured.size() > 0) {
    kit.engine->read_statistics(measured.data());
    ready.statistics = engine::without_padding(kit.prepared->model.statistics, measured.span());
  }
  const double forward_seconds = watch.restart() - waited_seconds;
  enter(schema::Phase::kBackward, asked.step);
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "backward", asked.step);
  // Each member's sum is weighted by N/B before anything is measured: the mean of the N gradients is the batch's
  // gradient.
  const double factor = static_cast<double>(options.weights.size()) / static_cast<double>(options.global_batch);
  std::size_t complete_from = kit.prepared->model.segments.size();  // segments [complete_from, size) are complete
  bool prefetched = false;
  kit.engine->backward(
      static_cast<float>(factor), kit.gradients.floats().address(), [&](std::size_t first, std::size_t last) {
        TG_CHECK(last == complete_from, first, last, complete_from);
        complete_from = first;
        add_weight_decay(asked.parameters, first, last);
        advance();
        while (ready.bucket < asked.first_segments.size() && asked.first_segments[ready.bucket] >= complete_from) {
          if (timeline->on()) {
            const auto now = Timeline::Clock::now();
            timeline->add(Timeline::Track::kCompute, "ready", asked.step, now, now,
                          {static_cast<std::int64_t>(ready.bucket)});
          }
          if (ready.bucket + 1 == asked.first_segments.size()) {
            ready.forward_seconds = forward_seconds;
            ready.backward_seconds = watch.restart();
            ready.data_seconds = data_seconds;
          }
          tell([&] { hooks.happened(GradientReady(ready)); });
          ready.statistics.clear();
          ++ready.bucket;
        }
        prefetched = prefetched || prefetch();
      });
  if (!prefetched) prefetch();
}

// Lets the engine have the next step's batch, if there is one and it is filled. Asked for from the first part of the
// gradient on: what is copied then costs no time, since the device has the rest of backward to do.
bool Trainer::State::prefetch() {
  const engine::Batch* const next = kit.batches ? kit.batches->peek() : nullptr;
  if (next != nullptr) kit.engine->prefetch(*next);
  return next != nullptr;
}

void Trainer::State::add_weight_decay(kernels::ConstFloats parameters, std::size_t first, std::size_t last) {
  const auto decay = static_cast<float>(options.job.weight_decay);
  if (decay == 0 || options.job.weight_decay_path != schema::WeightDecayPath::kInside) return;
  for (std::size_t s = first; s < last; ++s) {
    const engine::Segment& segment = kit.prepared->model.segments[s];
    if (!segment.decays) continue;
    const std::size_t begin = segment.offset, count = segment.padded_count();
    kit.tensors->add_scaled(parameters.subspan(begin, count), decay, kit.gradients.floats().subspan(begin, count));
  }
}

// The parameters of the step before are not all there yet. This is a wait for peers: the deadline for it is theirs.
void Trainer::State::wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last) {
  if (silent) throw Abandoned{};
  std::unique_lock lock(mutex);
  const auto ready = [&] {
    return std::all_of(segments_ready.begin() + static_cast<std::ptrdiff_t>(first),
                       segments_ready.begin() + static_cast<std::ptrdiff_t>(last), [](bool one) { return one; });
  };
  if (ready()) return;
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "wait", step);
  Stopwatch watch;
  changed.wait(lock, [&] { return silent || ready(); });
  if (silent) throw Abandoned{};
  waited_seconds += watch.restart();
  set_phase(schema::Phase::kForward);
}

void Trainer::State::evaluate(const Evaluate& asked) {
  enter(schema::Phase::kEvaluate, asked.step);
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "evaluate", asked.step);
  const Prepared& prepared = *kit.prepared;
  const engine::Share part = engine::split(prepared.data->test.count(), options.weights)[options.self.index()];
  engine::EvaluationCounts counts;
  for (int done = 0; done < part.count;) {
    const int wanted = std::min(evaluation_samples(prepared.model.input), part.count - done);
    evaluation_batch.count = wanted;  // less comes of it where damaged files are skipped
    engine::fill_evaluation_batch(*prepared.data, prepared.recipe,
                                  static_cast<std::size_t>(part.first) + static_cast<std::size_t>(done),
                                  evaluation_batch, static_cast<int>(prepared.threads));
    done += wanted;
    advance();
    if (evaluation_batch.count == 0) continue;
    counts += kit.engine->evaluate(prepared.replica->average().address(), prepared.replica->statistics().data(),
                                   evaluation_batch);
    advance();
  }
  set_phase(schema::Phase::kIdle);
  tell([&] { hooks.happened(Evaluated{asked.step, counts}); });
}

}  // namespace tg::daemon

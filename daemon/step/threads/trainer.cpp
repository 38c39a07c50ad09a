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
  Origin of;
  kernels::ConstFloats parameters;
  std::vector<std::size_t> first_segments;  // one per bucket; a copy: the thread may outlive the run
};
struct Evaluate {
  Origin of;
};
struct Fit {
  std::uint32_t view = 0;
  LocalShare part;
  Step first;
};
struct Quit {};
using Order = std::variant<Train, Evaluate, Fit, Quit>;

class Stopwatch {
 public:
  double restart() {  // seconds since the last one
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// Thrown through the preparation of kit and engine once their result is not needed any more.
struct Abandoned {};

}  // namespace

struct Trainer::State {
  State(Options o, Makers m, Progress& p, const FaultInjection& f, std::shared_ptr<Timeline> t, Hooks h)
      : options(std::move(o)),
        makers(std::move(m)),
        progress(p),
        fault(f),
        timeline(std::move(t)),
        hooks(std::move(h)) {}

  std::shared_ptr<void> orphaned_threads;  // goes last, when everything that it took is free
  const Options options;
  const Makers makers;
  Progress& progress;
  const FaultInjection fault;
  const std::shared_ptr<Timeline> timeline;
  Hooks hooks;

  std::mutex mutex;  // guards order, taken, silent, returned, segments_ready
  std::condition_variable changed;
  std::optional<Order> order;
  std::uint64_t taken = 0;                  // orders by the thread
  std::atomic<std::uint64_t> abandoned{0};  // how many of them were abandoned; written under the mutex
  std::atomic<bool> silent{false};          // hooks are not called any more; written under the mutex
  bool returned = false;                    // the thread is about to end
  std::vector<bool> segments_ready;         // the current order's parameters

  // compute thread, after preparing
  std::uint64_t own = 0;  // the present order, counted from 1
  TrainingKit kit;
  engine::Batch evaluation_batch;
  AlignedArray<float> measured;  // by batch normalizations
  double waited_seconds = 0;     // for parameters, in this forward pass
  double data_wait_seconds = 0;  // for samples, in all steps so far
  const engine::Batch no_batch;

  void run();
  bool make_kit();
  bool execute(const Order& next);
  template <class Call>
  void with_engine(const Origin& of, Call call);
  void give_up_engine();
  void rebuild(const Fit& asked);
  void train(const Train& asked);
  bool prefetch();
  void wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last);
  void evaluate(const Evaluate& asked);
  // Hooks are called under the lock, so never after the trainer was destroyed.
  template <class Call>
  void tell(Call call) {
    const std::lock_guard lock(mutex);
    if (!is_abandoned()) call();
  }
  // The run is over, and the progress belongs to the next one by now; or the current order was abandoned.
  bool is_abandoned() const { return silent || (own > 0 && own <= abandoned); }
  void advance() {
    if (is_abandoned()) throw Abandoned{};
    ++progress.count;
  }
  void set_phase(schema::Phase phase) {
    if (!is_abandoned()) progress.phase = phase;
  }
  void enter(schema::Phase phase, std::uint64_t step) {
    set_phase(phase);
    advance();
    fault.reached(phase, step);
  }
  Order wait_for_order() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return order.has_value(); });
    own = ++taken;
    return *std::exchange(order, std::nullopt);
  }
};

Trainer::Trainer(Options options, Makers makers, Progress& progress, const FaultInjection& fault,
                 std::shared_ptr<Timeline> timeline, Hooks hooks)
    : state_(std::make_shared<State>(std::move(options), std::move(makers), progress, fault, std::move(timeline),
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
    state_->orphaned_threads = state_->progress.orphaned_threads.add(state_->options.run);
}

void Trainer::train(const Origin& of, const Layout& layout, kernels::ConstFloats parameters, bool early) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  Train order{of, parameters, {}};
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

void Trainer::evaluate(const Origin& of) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  state_->order = Evaluate{of};
  state_->changed.notify_all();
}

void Trainer::rebuild(std::uint32_t view, const LocalShare& part, Step first) {
  const std::lock_guard lock(state_->mutex);
  TG_CHECK(!state_->order.has_value());
  state_->order = Fit{view, part, first};
  state_->changed.notify_all();
}

void Trainer::abandon() {
  const std::lock_guard lock(state_->mutex);
  state_->order.reset();
  state_->abandoned = state_->taken;
  state_->changed.notify_all();
}

kernels::ConstFloats Trainer::gradients() const { return std::as_const(state_->kit.gradients).floats(); }

// --- compute thread ---

void Trainer::State::run() {
  try {
    // The phase stays `prepare` until the run begins: waiting for slower members is no stall.
    if (make_kit())
      while (execute(wait_for_order())) continue;
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    tell([&] { hooks.on_event(EngineFailed{{}, error.what()}); });
  }
  give_up_engine();
  const std::lock_guard lock(mutex);
  returned = true;
  changed.notify_all();
}

// False if nothing comes after it.
bool Trainer::State::execute(const Order& next) {
  if (std::holds_alternative<Quit>(next)) return false;
  if (const auto* trains = std::get_if<Train>(&next)) with_engine(trains->of, [&] { train(*trains); });
  if (const auto* evaluates = std::get_if<Evaluate>(&next)) with_engine(evaluates->of, [&] { evaluate(*evaluates); });
  if (const auto* refits = std::get_if<Fit>(&next)) rebuild(*refits);
  return !silent;
}

template <class Call>
void Trainer::State::with_engine(const Origin& of, Call call) {
  if (!kit.engine) return;  // it has failed, which has been told
  try {
    call();
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    {
      // An engine that failed in an abandoned order fails in the next one too, if it cannot continue.
      const std::lock_guard lock(mutex);
      if (is_abandoned()) return;
      hooks.on_event(EngineFailed{of, error.what()});
    }
    give_up_engine();
  }
}

void Trainer::State::give_up_engine() {
  kit.engine.reset();  // first: it may be copying a batch
  kit.batches.reset();
}

void Trainer::State::rebuild(const Fit& asked) {
  Status rebuilt;
  try {
    set_phase(schema::Phase::kForward);  // the others wait for it: it has a step's deadline
    advance();
    rebuilt = makers.rebuild(kit, asked.part, asked.first, [this] { advance(); });
  } catch (const Abandoned&) {
    return;
  }
  if (!rebuilt.ok()) give_up_engine();
  data_wait_seconds = kit.batches ? kit.batches->waited_seconds() : 0;
  tell([&] {
    using Rebuilt = Result<std::shared_ptr<const PreparedView>>;
    hooks.on_rebuilt(asked.view, rebuilt.ok() ? Rebuilt(kit.view) : Rebuilt(rebuilt.error()));
  });
}

bool Trainer::State::make_kit() {
  enter(schema::Phase::kPrepare, 0);
  Result<TrainingKit> made = makers.prepare([this] { advance(); });
  if (!made) {
    tell([&] { hooks.on_prepared(made.error()); });
    return false;
  }
  kit = std::move(made).value();
  measured = AlignedArray<float>(kit.prepared->model.statistics.padded_count());
  tell([&] { hooks.on_prepared(kit.view); });
  return true;
}

void Trainer::State::train(const Train& asked) {
  const std::uint64_t step = asked.of.step.value();
  enter(schema::Phase::kForward, step);
  if (kit.batches && kit.batches->next_step() != step) {  // an order was abandoned
    kit.engine->forget_prefetch();
    kit.batches->seek(step);
  }
  const engine::Batch& batch = kit.batches ? kit.batches->next() : no_batch;
  const double data_waits = kit.batches ? kit.batches->waited_seconds() : 0;
  const double data_seconds = data_waits - std::exchange(data_wait_seconds, data_waits);
  GradientReady ready{asked.of};
  Stopwatch watch;
  waited_seconds = 0;
  {
    const TimelineSpan span(*timeline, Timeline::Track::kCompute, "forward", step);
    ready.loss_sum = kit.engine->forward(
        asked.parameters.address(), batch,
        [this, step](std::size_t first, std::size_t last) { wait_for_segments(step, first, last); });
  }
  if (measured.size() > 0) {
    kit.engine->read_statistics(measured.data());
    ready.statistics = engine::without_padding(kit.prepared->model.statistics, measured.span());
  }
  const double forward_seconds = watch.restart() - waited_seconds;
  enter(schema::Phase::kBackward, step);
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "backward", step);
  std::size_t complete_from = kit.prepared->model.segments.size();  // segments [complete_from, size) are complete
  bool prefetched = false;
  kit.engine->backward(
      static_cast<float>(kit.part.factor()), kit.gradients.floats().address(),
      [&](std::size_t first, std::size_t last) {
        TG_CHECK(last == complete_from, first, last, complete_from);
        complete_from = first;
        add_weight_decay(options.job, kit, asked.parameters, kit.gradients.floats(), first, last);
        advance();
        while (ready.bucket < asked.first_segments.size() && asked.first_segments[ready.bucket] >= complete_from) {
          if (timeline->is_enabled()) {
            const auto now = Timeline::Clock::now();
            timeline->add(Timeline::Track::kCompute, "ready", step, now, now,
                          {static_cast<std::int64_t>(ready.bucket)});
          }
          if (ready.bucket + 1 == asked.first_segments.size()) {
            ready.forward_seconds = forward_seconds;
            ready.backward_seconds = watch.restart();
            ready.data_seconds = data_seconds;
          }
          tell([&] { hooks.on_event(GradientReady(ready)); });
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

void add_weight_decay(const schema::JobSpec& job, const TrainingKit& kit, kernels::ConstFloats parameters,
                      kernels::Floats gradient, std::size_t first, std::size_t last) {
  const auto decay = static_cast<float>(job.weight_decay);
  if (decay == 0 || !schema::decays_inside(job)) return;
  for (std::size_t s = first; s < last; ++s) {
    const engine::Segment& segment = kit.prepared->model.segments[s];
    if (!segment.decays) continue;
    const std::size_t begin = segment.offset, count = segment.padded_count();
    kit.tensors->add_scaled(parameters.subspan(begin, count), decay, gradient.subspan(begin, count));
  }
}

// The parameters of the step before are not all there yet. This is a wait for peers: the deadline for it is theirs.
void Trainer::State::wait_for_segments(std::uint64_t step, std::size_t first, std::size_t last) {
  std::unique_lock lock(mutex);
  if (is_abandoned()) throw Abandoned{};
  const auto ready = [&] {
    return std::all_of(segments_ready.begin() + static_cast<std::ptrdiff_t>(first),
                       segments_ready.begin() + static_cast<std::ptrdiff_t>(last), [](bool one) { return one; });
  };
  if (ready()) return;
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "wait", step);
  Stopwatch watch;
  changed.wait(lock, [&] { return is_abandoned() || ready(); });
  if (is_abandoned()) throw Abandoned{};
  waited_seconds += watch.restart();
  set_phase(schema::Phase::kForward);
}

void Trainer::State::evaluate(const Evaluate& asked) {
  enter(schema::Phase::kEvaluate, asked.of.step.value());
  const TimelineSpan span(*timeline, Timeline::Track::kCompute, "evaluate", asked.of.step.value());
  const Prepared& prepared = *kit.prepared;
  const engine::Share part = engine::split(prepared.data->test.count(), kit.part.weights)[kit.part.self.index()];
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
  tell([&] { hooks.on_event(Evaluated{asked.of, counts}); });
}

}  // namespace tg::daemon

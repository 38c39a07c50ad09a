#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/data/fill_sample.h"
#include "engine/data/limits.h"
#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kPiecesPerThread = 4;  // pieces of a batch: a thread that is done early helps the others

}  // namespace

// Batch i (counted from `first`, where the source began or went to) lives in slot i mod kPrefetchBatches. Call c of
// next() (counted from 1) hands out batch c-1 and frees batch c-2, so with two slots batch i may be filled once
// i <= calls. The threads take pieces of batch `current` until all are taken, then go on to the next; the thread that
// opens a batch finds its samples.
struct BatchSource::State {
  struct Slot {
    Batch batch;
    std::vector<std::size_t> images;
    std::uint64_t index = UINT64_MAX;
    std::size_t taken = 0, done = 0;  // samples
    bool full(std::uint64_t wanted) const { return index == wanted && done == images.size(); }
  };

  State(std::shared_ptr<const Dataset> dataset, const Options& given)
      : data(std::move(dataset)), options(given), stream(given.seed, data->train.count()), first(given.first_step) {
    for (std::uint64_t i = 0; i < std::min(kPrefetchBatches, steps()); ++i) {
      slots[i].batch.count = options.share.count;
      shape_batch(options.recipe, slots[i].batch, options.space);
    }
  }

  std::uint64_t steps() const { return options.last_step - first; }
  std::uint64_t position_of(std::uint64_t index) const {
    return (first + index) * options.global_batch + options.share.first;
  }
  bool has_work() const { return current < steps() && current + 1 < calls + kPrefetchBatches; }

  void open(Slot& slot) {
    // An engine may copy what peek() has shown until next() has handed it out, and use it until the call after that.
    TG_CHECK(slot.index == UINT64_MAX || slot.index + 2 <= calls, slot.index, calls);
    slot.batch.first_position = position_of(current);
    slot.images.resize(slot.batch.labels.size());
    for (std::size_t i = 0; i < slot.images.size(); ++i) slot.images[i] = stream.sample(position_of(current) + i);
    slot.taken = slot.done = 0;
    slot.index = current;
  }

  void work() {
    Scratch scratch;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stopping || failure || (has_work() && !seeking); });
      if (stopping || failure) return;
      const std::uint64_t index = current;
      Slot& slot = slots[index % kPrefetchBatches];
      if (slot.index != index) open(slot);
      const std::size_t count = slot.images.size(), begin = slot.taken;
      const std::uint64_t position = position_of(index);
      const std::size_t pieces = kPiecesPerThread * static_cast<std::size_t>(options.threads);
      const std::size_t last = options.threads == 1 ? count : std::min(count, begin + 1 + count / pieces);
      slot.taken = last;
      if (last == count) ++current;
      ++filling;
      lock.unlock();
      for (std::size_t i = begin; i < last && !stopping && !seeking; ++i)
        fill_training_sample(*data, options.recipe, options.seed, position + i, slot.images[i], scratch, slot.batch, i);
      lock.lock();
      --filling;
      slot.done += last - begin;
      changed.notify_all();
    }
  }

  // Waits until no thread fills a batch, then starts over.
  void seek(std::uint64_t step) {
    std::unique_lock lock(mutex);
    TG_CHECK(options.first_step <= step && step < options.last_step, step, options.last_step);
    if (step == first + calls) return;
    // The batch before the next one is still in its slot, unless it was gone back from already.
    if (calls > 0 && step + 1 == first + calls && slots[(calls - 1) % kPrefetchBatches].full(calls - 1)) {
      --calls;
      return;
    }
    seeking = true;
    changed.wait(lock, [&] { return filling == 0 || failure; });
    for (Slot& slot : slots) slot.index = UINT64_MAX;
    first = step;
    current = calls = 0;
    seeking = false;
    changed.notify_all();
  }

  void run() {
    try {
      work();
    } catch (...) {  // a damaged file, or memory ran out: next() throws it
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      changed.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
  }

  const std::shared_ptr<const Dataset> data;
  const Options options;

  std::mutex mutex;
  std::condition_variable changed;
  SampleStream stream;
  std::uint64_t first;  // step of batch 0
  std::array<Slot, kPrefetchBatches> slots;
  std::uint64_t current = 0;  // the batch whose samples are being handed out
  std::uint64_t calls = 0;    // to next()
  double waited_seconds = 0;
  std::size_t filling = 0;                            // threads that fill a piece
  std::atomic<bool> stopping{false}, seeking{false};  // written under the mutex
  std::exception_ptr failure;
  std::vector<std::thread> threads;
};

BatchSource::BatchSource(std::shared_ptr<const Dataset> data, const Options& options) {
  TG_CHECK(data != nullptr);
  TG_CHECK(options.first_step <= options.last_step, options.first_step, options.last_step);
  TG_CHECK(options.threads >= 1, options.threads);
  state_ = std::make_unique<State>(std::move(data), options);
  try {
    for (int i = 0; i < options.threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->run(); });
  } catch (...) {  // no more threads here
    state_->stop();
    throw;
  }
}

BatchSource::~BatchSource() { state_->stop(); }

const Batch& BatchSource::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  TG_CHECK(state.calls < state.steps(), state.calls);
  const std::uint64_t index = state.calls++;
  const State::Slot& slot = state.slots[index % kPrefetchBatches];
  state.changed.notify_all();
  const Clock::time_point start = Clock::now();
  state.changed.wait(lock, [&] { return slot.full(index) || state.failure; });
  state.waited_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  if (!slot.full(index)) std::rethrow_exception(state.failure);
  return slot.batch;
}

const Batch* BatchSource::peek() const {
  const State& state = *state_;
  const std::lock_guard lock(state_->mutex);
  const State::Slot& slot = state.slots[state.calls % kPrefetchBatches];
  return slot.full(state.calls) ? &slot.batch : nullptr;
}

std::uint64_t BatchSource::next_step() const {
  const std::lock_guard lock(state_->mutex);
  return state_->first + state_->calls;
}

void BatchSource::seek(std::uint64_t step) { state_->seek(step); }

double BatchSource::waited_seconds() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waited_seconds;
}

}  // namespace tg::engine

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {

// Two slots; batch i (counted from first_step) lives in slot i mod 2. Call c of next() (counted from 1) hands out batch
// c-1 and frees batch c-2. So after c calls batch c, and none later, has a free slot: the thread writes batch i once
// i <= calls.
struct BatchSource::State {
  State(std::shared_ptr<const Dataset> dataset, const Options& given)
      : data(std::move(dataset)), options(given), stream(given.seed, data->train.count()) {}

  void fill(std::uint64_t index) {
    Batch& batch = slots[index % 2];
    batch.count = options.share.count;
    const std::uint64_t position = (options.first_step + index) * options.global_batch + options.share.first;
    fill_training_batch(*data, stream, options.seed, position, options.input, batch);
  }

  void produce() {
    const std::uint64_t steps = options.last_step - options.first_step;
    try {
      for (std::uint64_t index = 0; index < steps; ++index) {
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return stopping || index <= calls; });
          if (stopping) return;
        }
        fill(index);
        const std::lock_guard lock(mutex);
        ready = index + 1;
        changed.notify_all();
      }
    } catch (...) {  // memory ran out: the caller of next() gets it
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      changed.notify_all();
    }
  }

  const std::shared_ptr<const Dataset> data;
  const Options options;
  SampleStream stream;  // of the thread
  std::array<Batch, 2> slots;

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t calls = 0;  // of next()
  std::uint64_t ready = 0;  // batches written
  bool stopping = false;
  std::exception_ptr failure;
  std::thread thread;
};

BatchSource::BatchSource(std::shared_ptr<const Dataset> data, const Options& options) {
  TG_CHECK(data != nullptr);
  TG_CHECK(options.first_step <= options.last_step, options.first_step, options.last_step);
  state_ = std::make_unique<State>(std::move(data), options);
  state_->thread = std::thread([state = state_.get()] { state->produce(); });
}

BatchSource::~BatchSource() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

const Batch& BatchSource::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  TG_CHECK(state.calls < state.options.last_step - state.options.first_step, state.calls);
  const std::uint64_t index = state.calls++;
  state.changed.notify_all();
  state.changed.wait(lock, [&] { return state.ready > index || state.failure; });
  if (state.ready <= index) std::rethrow_exception(state.failure);
  return state.slots[index % 2];
}

}  // namespace tg::engine

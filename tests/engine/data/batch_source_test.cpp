#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "engine/data/picture.h"
#include "engine/dataset.h"

namespace tg::engine {
namespace {

std::shared_ptr<const Dataset> digits() {
  DatasetOptions options;
  options.kind = DatasetKind::kSynthetic;
  options.synthetic_train = 50;
  options.synthetic_test = 1;
  return *load_dataset(options);
}

class Failing final : public PictureSource {
 public:
  Status read(std::size_t, const Shrink&, Picture&) const override { return Error{ErrorKind::kFailed, "no file"}; }
};

BatchSource::Options options_of(const Dataset& data) {
  BatchSource::Options options;
  options.seed = 17;
  options.global_batch = 16;
  options.share = {6, 5};
  options.first_step = 5;
  options.last_step = 30;
  options.recipe = make_recipe(data, data.train.stored).value();
  return options;
}

TEST(BatchSource, EqualsDirectFillAndStaysValidUntilTheNextCall) {
  const auto data = digits();
  const auto options = options_of(*data);
  BatchSource source(data, options);
  SampleStream stream(options.seed, data->train.count());
  for (std::uint64_t step = options.first_step; step < options.last_step; ++step) {
    const Batch& batch = source.next();
    Batch expected;
    expected.count = options.share.count;
    fill_training_batch(*data, options.recipe, stream, options.seed, step * options.global_batch + options.share.first,
                        expected);
    ASSERT_EQ(batch.count, options.share.count);
    ASSERT_EQ(batch.first_position, step * options.global_batch + options.share.first) << "dropout's key";
    ASSERT_EQ(batch.labels, expected.labels) << step;
    ASSERT_TRUE(std::ranges::equal(batch.images.span(), expected.images.span())) << step;
  }
}

// A memory space that counts what it allocates.
class CountingMemorySpace final : public kernels::MemorySpace {
 public:
  std::string_view name() const override { return "counting"; }
  std::unique_ptr<kernels::TensorKernels> make_kernels() override { return nullptr; }
  kernels::Floats allocate(std::size_t) override { return {}; }
  void release(kernels::Floats) override {}
  kernels::HostArray allocate_host(std::size_t count) override {
    ++given_;
    ++held_;
    auto* const array = new AlignedArray<float>(count);
    return {std::shared_ptr<float>(array->data(),
                                   [this, array](float*) {
                                     delete array;
                                     --held_;
                                   }),
            count};
  }
  int given() const { return given_; }
  int held() const { return held_; }

 private:
  std::atomic<int> given_ = 0, held_ = 0;
};

// What peek shows is what next gives, and it stays so until the call after that: an engine may copy it meanwhile.
TEST(BatchSource, ShowsTheNextBatchOnceItIsFilled) {
  const auto data = digits();
  auto options = options_of(*data);
  CountingMemorySpace space;
  options.space = &space;
  {
    BatchSource source(data, options);
    std::vector<float> shown, given;
    for (std::uint64_t step = options.first_step; step < options.last_step; ++step) {
      const Batch* peeked = source.peek();
      const Batch& batch = source.next();
      if (peeked != nullptr) {
        ASSERT_EQ(peeked, &batch);
      }
      if (!shown.empty()) {
        ASSERT_TRUE(std::ranges::equal(batch.images.span(), shown)) << step;
      }
      given.assign(batch.images.begin(), batch.images.end());
      shown.clear();
      const bool last = step + 1 == options.last_step;
      while (!last && (peeked = source.peek()) == nullptr) std::this_thread::yield();
      if (last) {
        EXPECT_EQ(source.peek(), nullptr);
      } else {
        ASSERT_NE(peeked, &batch);
        ASSERT_EQ(peeked->first_position, batch.first_position + options.global_batch);
        shown.assign(peeked->images.begin(), peeked->images.end());
      }
      ASSERT_TRUE(std::ranges::equal(batch.images.span(), given)) << step;
    }
    EXPECT_EQ(space.given(), 2);
  }
  EXPECT_EQ(space.held(), 0);
}

// Wherever it goes, forwards, back by one or by more, to where it is: each batch is the step's.
TEST(BatchSource, SeeksAnyStep) {
  const auto data = digits();
  for (const int threads : {1, 3}) {
    auto options = options_of(*data);
    options.threads = threads;
    BatchSource source(data, options);
    SampleStream stream(options.seed, data->train.count());
    std::mt19937_64 random(static_cast<std::uint64_t>(threads));
    std::uint64_t step = options.first_step;
    for (int i = 0; i < 300; ++i) {
      if (random() % 2 == 0) {
        const std::uint64_t least = step > options.first_step + 2 ? step - 2 : options.first_step;
        step = random() % 2 == 0 ? least + random() % 4
                                 : options.first_step + random() % (options.last_step - options.first_step);
        step = std::min(step, options.last_step - 1);
        source.seek(step);
      }
      if (step == options.last_step) source.seek(step = options.first_step);
      EXPECT_EQ(source.next_step(), step);
      if (const Batch* shown = source.peek(); shown != nullptr) {
        ASSERT_EQ(shown->first_position, step * options.global_batch + options.share.first);
      }
      const Batch& batch = source.next();
      Batch expected;
      expected.count = options.share.count;
      fill_training_batch(*data, options.recipe, stream, options.seed,
                          step * options.global_batch + options.share.first, expected);
      ASSERT_EQ(batch.first_position, expected.first_position) << i;
      ASSERT_EQ(batch.labels, expected.labels) << i;
      ASSERT_TRUE(std::ranges::equal(batch.images.span(), expected.images.span())) << i;
      ++step;
    }
  }
}

TEST(BatchSource, HasNothingToShowOfAFailure) {
  const auto data = digits();
  auto broken = std::make_shared<Dataset>(*data);
  broken->train.pixels.clear();
  broken->train.source = std::make_shared<Failing>();
  BatchSource source(broken, options_of(*data));
  EXPECT_THROW(source.next(), std::runtime_error);
  EXPECT_EQ(source.peek(), nullptr);
}

TEST(BatchSource, ThreadsFillTheSameBatches) {
  const auto data = digits();
  auto options = options_of(*data);
  BatchSource one(data, options);
  options.threads = 5;
  BatchSource five(data, options);
  for (std::uint64_t step = options.first_step; step < options.last_step; ++step) {
    const Batch& a = one.next();
    const Batch& b = five.next();
    ASSERT_EQ(a.labels, b.labels) << step;
    ASSERT_TRUE(std::ranges::equal(a.images.span(), b.images.span())) << step;
  }
}

constexpr std::chrono::milliseconds kHeld{20};

// Black pictures, two a batch. One of batch 1 is held until batch 2 is begun, which takes a caller that waits for batch
// 1, and for kHeld from then on.
class Holding final : public PictureSource {
 public:
  Status read(std::size_t, const Shrink&, Picture& picture) const override {
    std::unique_lock lock(mutex_);
    const int number = reads_++;
    changed_.notify_all();
    if (number == 2) {
      EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return reads_ > 4; }));
      lock.unlock();
      std::this_thread::sleep_for(kHeld);
    }
    picture.shape(1, 8, 8);
    return {};
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int reads_ = 0;
};

TEST(BatchSource, ReportsHowLongItWasWaitedFor) {
  const auto data = std::make_shared<Dataset>();
  data->train.stored = {1, 8, 8};
  data->train.labels.resize(6);
  data->train.source = std::make_shared<Holding>();
  BatchSource::Options options;
  options.global_batch = 2;
  options.share = {0, 2};
  options.last_step = 3;
  options.recipe.input = data->train.stored;
  options.threads = 2;
  BatchSource source(data, options);
  EXPECT_EQ(source.waited_seconds(), 0);
  source.next();
  const double before = source.waited_seconds();
  const auto start = std::chrono::steady_clock::now();
  source.next();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  const double waited = source.waited_seconds() - before;
  EXPECT_GE(waited, std::chrono::duration<double>(kHeld).count() * 0.999);
  EXPECT_LE(waited, all.count() * 1.001);
}

// Members' batches of one step, put together, are the batch of a run of one.
TEST(BatchSource, SharesTogetherAreTheGlobalBatch) {
  const auto data = digits();
  auto options = options_of(*data);
  options.share = {0, 16};
  BatchSource whole(data, options);
  options.share = {0, 5};
  BatchSource first(data, options);
  options.share = {5, 11};
  BatchSource second(data, options);
  for (int step = 0; step < 5; ++step) {
    auto labels = first.next().labels;
    const auto& rest = second.next().labels;
    labels.insert(labels.end(), rest.begin(), rest.end());
    ASSERT_EQ(whole.next().labels, labels);
  }
}

// Each destructor must return: the thread then waits for a free slot, fills, is done, or has not begun.
TEST(BatchSource, DestructionNeverWaitsForACaller) {
  const auto data = digits();
  for (int calls = 0; calls < 4; ++calls) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      auto options = options_of(*data);
      options.threads = 1 + repeat % 3;
      BatchSource source(data, options);
      for (int i = 0; i < calls; ++i) source.next();
    }
  }
  auto none = options_of(*data);
  none.last_step = none.first_step;
  const BatchSource idle(data, none);
}

TEST(BatchSource, KeepsTheDatasetAlive) {
  auto data = digits();
  const auto options = options_of(*data);
  BatchSource source(data, options);
  data.reset();
  for (std::uint64_t step = options.first_step; step < options.last_step; ++step) {
    ASSERT_EQ(source.next().count, options.share.count);
  }
}

TEST(BatchSourceDeathTest, CallsBeyondTheLastStepAreABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto data = digits();
  auto options = options_of(*data);
  options.last_step = options.first_step + 1;
  EXPECT_DEATH(
      {
        BatchSource source(data, options);
        source.next();
        source.next();
      },
      "bug:");
}

}  // namespace
}  // namespace tg::engine

// How many pictures a folder gives per second: read, decoded, resized, cropped, flipped and normalized as for training,
// on so many threads. Beside it tests/bench/data_compare does the same with Pillow, as PyTorch's DataLoader would.
//
//   tgd_bench_data --folder DIR [--size 224] [--threads 1] [--batch 64] [--batches 20]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/dataset.h"

namespace {

using namespace tg;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "tgd_bench_data: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace

int main(int count, char** words) {
  engine::DatasetOptions options;
  options.kind = DatasetKind::kFolder;
  options.test_share = 0.1;
  int size = 224, threads = 1, batch = 64, batches = 20;
  for (int i = 1; i < count; i += 2) {
    const std::string word = words[i];
    if (i + 1 == count) fail("no value after " + word);
    if (word == "--folder")
      options.directory = words[i + 1];
    else if (word == "--size")
      size = std::atoi(words[i + 1]);
    else if (word == "--threads")
      threads = std::atoi(words[i + 1]);
    else if (word == "--batch")
      batch = std::atoi(words[i + 1]);
    else if (word == "--batches")
      batches = std::atoi(words[i + 1]);
    else
      fail("unknown option " + word);
  }
  if (size < 1 || threads < 1 || batch < 1 || batches < 1) fail("sizes and counts are whole numbers from 1 on");
  options.threads = threads;
  const auto loaded = engine::load_dataset(options);
  if (!loaded) fail(loaded.error().message);
  const auto recipe = engine::make_recipe(**loaded, {3, size, size}, {}, threads);
  if (!recipe) fail(recipe.error().message);
  engine::BatchSource::Options source_options;
  source_options.global_batch = static_cast<std::uint64_t>(batch);
  source_options.share = {0, batch};
  source_options.last_step = static_cast<std::uint64_t>(batches) + 2;
  source_options.recipe = *recipe;
  source_options.threads = threads;
  engine::BatchSource source(*loaded, source_options);
  // What is timed has to be right: the first batch is that of one thread.
  engine::Batch expected;
  expected.count = batch;
  engine::SampleStream stream(0, (*loaded)->train.count());
  engine::fill_training_batch(**loaded, *recipe, stream, 0, 0, expected);
  const engine::Batch& first = source.next();
  for (std::size_t i = 0; i < expected.images.size(); ++i) {
    if (first.images[i] != expected.images[i]) fail("a batch differs from that of one thread");
  }
  source.next();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < batches; ++i) source.next();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.1f\n", batch * batches / seconds);
}

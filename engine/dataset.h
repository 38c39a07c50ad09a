// Datasets in memory and the stream of samples that training takes from them.
//
// A dataset holds all its images as bytes (uint8, CHW) and labels; it is immutable once loaded, any thread may read it.
// The sample stream is the concatenation of per-epoch permutations drawn from the seed; step k takes positions
// [k*B, (k+1)*B), members take consecutive parts by rank. Augmentation is keyed by (seed, position), never by rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/base/choices.h"
#include "kernels/base/status.h"

namespace tg::engine {

struct ImageSet {
  ImageShape stored;                 // as in the file: 1x28x28, 3x32x32
  std::vector<std::uint8_t> pixels;  // count * stored.elements()
  std::vector<std::uint8_t> labels;
  std::size_t count() const { return labels.size(); }
};

// How bytes become the engine's input.
enum class Preprocessing : std::uint8_t {
  kSymmetric,        // (x/255 - 0.5) * 2: MNIST and the synthetic digits
  kCifarTraining24,  // random 24x24 crop, flip, brightness +-63/255, contrast 0.2..1.8, per-image standardization;
                     // evaluation: centre crop and standardization
};

struct Dataset {
  DatasetKind kind = DatasetKind::kSynthetic;
  ImageSet train, test;
  Preprocessing preprocessing = Preprocessing::kSymmetric;
  std::uint64_t hash =
      0;  // over file bytes (decompressed), or generator version, seed and sizes plus a sample of images
};

struct DatasetOptions {
  DatasetKind kind = DatasetKind::kSynthetic;
  std::string directory;            // where the files lie; unused by the synthetic set
  std::uint64_t seed = 1;           // of the synthetic set; train and test draw from disjoint streams of it
  std::size_t synthetic_train = 0;  // images; 0 = the generator's default
  std::size_t synthetic_test = 0;
};

// Errors name the file, what is wrong with it and what to do.
Result<std::shared_ptr<const Dataset>> load_dataset(const DatasetOptions& options);

class SampleStream {
 public:
  SampleStream(std::uint64_t seed, std::size_t sample_count);
  // The sample at a position of the stream. Consecutive positions are cheap; not thread-safe (keeps the epoch's
  // permutation).
  std::size_t sample(std::uint64_t position);

 private:
  std::uint64_t seed_;
  std::size_t count_;
  std::uint64_t epoch_ = UINT64_MAX;
  std::vector<std::uint32_t> permutation_;
};

// A member's part of `total` samples.
struct Share {
  std::uint64_t first = 0;  // offset from the step's first position
  int count = 0;
};
// Consecutive parts by rank, in proportion to the weights (each 1 or more): of what the quotas' whole numbers leave
// over, the largest remainders get one each, the lower rank first among equals. Nobody goes without as long as there is
// a sample for each. Whole numbers only, so all members find the same. Equal weights: parts that differ by one at most,
// the longer ones first.
std::vector<Share> split(std::uint64_t total, std::span<const std::uint16_t> weights);

// An error unless images of this dataset can become `input` and every label is below `classes`: asked once per run,
// since the fill functions take it as given.
Status check_input(const Dataset& data, const ImageShape& input, int classes);

// Fills a training batch (augmented where the preprocessing says so) from stream positions [first, first +
// batch.count).
void fill_training_batch(const Dataset& data, SampleStream& stream, std::uint64_t seed, std::uint64_t first_position,
                         const ImageShape& input, Batch& batch);
// Fills an evaluation batch from test images [first, first + batch.count).
void fill_evaluation_batch(const Dataset& data, std::size_t first, const ImageShape& input, Batch& batch);

// Prefetches training batches on its own thread, one ahead: next() waits for step k's batch, which stays valid until
// the following call. Destruction joins the thread. next() is called from one thread, steps ascending by one from
// `first_step`.
class BatchSource {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::uint64_t global_batch = 0;
    Share share;
    std::uint64_t first_step = 0;
    std::uint64_t last_step = 0;  // exclusive
    ImageShape input;
  };
  BatchSource(std::shared_ptr<const Dataset> data, const Options& options);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  const Batch& next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::engine

// Datasets, and the stream of samples that training takes from them.
//
// A dataset knows its samples' shape (or that it varies), its classes, and each sample as it is stored: bytes (CHW) or
// floats in memory, or pictures that are decoded or drawn when they are asked for. It is immutable once loaded, any
// thread may read it. What makes a stored sample into the engine's input is a recipe (recipe.h).
// The sample stream is the concatenation of per-epoch permutations drawn from the seed; step k takes positions
// [k*B, (k+1)*B), members take consecutive parts by rank. Augmentation is keyed by (seed, position), never by rank.
//
//   data            files, below data-dir (each plain or .gz, but for folder and npy)
//   synthetic       none: engine/data/digits. fractals: none: engine/data/fractals
//   mnist           train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., there or in mnist/
//   fashion-mnist   the same in fashion-mnist/, else where Debian's dataset-fashion-mnist has put them, else there
//   cifar10, cifar100   the binary batches, there or in cifar-10-batches-bin/, cifar-100-binary/
//   idx             one file each with train-images, train-labels, t10k-images, t10k-labels in its name
//   npy             x_train.npy, y_train.npy, x_test.npy, y_test.npy, or x.npy, y.npy: files/array_sets.h
//   folder          JPEG and PNG, a folder per class: folder/list.h
//
// idx, npy and folder without a part for testing hold back test_share of each class.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/choices.h"
#include "engine/engine.h"
#include "engine/recipe.h"
#include "kernels/base/status.h"
#include "kernels/home.h"

namespace tg::engine {

class PictureSource;

// One of pixels, values and source holds the samples.
struct ImageSet {
  ImageShape stored;                            // height = width = 0 where it varies
  std::vector<std::uint8_t> pixels;             // count * stored.elements()
  std::vector<float> values;                    // count * stored.elements(), finite
  std::shared_ptr<const PictureSource> source;  // pictures of 1 or 3 channels
  std::vector<std::uint16_t> labels;
  std::size_t count() const { return labels.size(); }
};

// Files that could not be decoded and were done without. Any thread.
class DamagedFiles {
 public:
  void add(const std::string& message);
  std::size_t count() const;                  // how often one was met
  std::vector<std::string> messages() const;  // of the first few, each once; each names its file

 private:
  mutable std::mutex mutex_;
  std::size_t count_ = 0;
  std::vector<std::string> messages_;
};

struct Dataset {
  DatasetKind kind = DatasetKind::kSynthetic;
  ImageSet train, test;
  std::vector<std::string> classes;  // their names; label c is classes[c]
  Damaged damaged = Damaged::kFatal;
  std::shared_ptr<DamagedFiles> skipped = std::make_shared<DamagedFiles>();
  // Over file bytes (decompressed) and, for folders, names; or generator version, seed, sizes and some of the images.
  std::uint64_t hash = 0;
};

struct DatasetOptions {
  DatasetKind kind = DatasetKind::kSynthetic;
  std::string directory;            // where the files lie; unused by what is drawn
  std::uint64_t seed = 1;           // of what is drawn, train and test from disjoint streams; of the samples held back
  std::size_t synthetic_train = 0;  // images of what is drawn; 0 = the generator's default
  std::size_t synthetic_test = 0;
  double test_share = 0;  // of each class, held back for testing; 0 = the data have a part for it
  Damaged damaged = Damaged::kFatal;
  int classes = 0;  // of the fractals; 0 = the default
  int size = 0;     // pixels of the fractals' sides; 0 = the default
  int threads = 1;  // that read, decode and draw
};

// Errors name the file, what is wrong with it and what to do.
Result<std::shared_ptr<const Dataset>> load_dataset(const DatasetOptions& options);

// The samples' shape and the classes of data that are always alike, or drawn; none where only the files know.
struct SetShape {
  ImageShape stored;
  int classes = 0;
};
std::optional<SetShape> known_shape(const DatasetOptions& options);

// What a model takes of data whose samples are stored like this: the same shape, but
//   folder: pictures with sides of `size` where that is not 0, and of the published size where they differ;
//   CifarNet on CIFAR: windows of its published size, as the paper's.
ImageShape input_of(DatasetKind data, const ImageShape& stored, ModelKind model, int size);

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

// An error unless every label is below `classes`: asked once per run, since the fill functions take it as given.
Status check_labels(const Dataset& data, int classes);

// Fills a training batch from stream positions [first, first + batch.count). In place of a damaged file that is to be
// skipped comes the next sample of the set. Throws std::runtime_error naming a damaged file that is fatal, or when
// nothing but damaged files follow.
void fill_training_batch(const Dataset& data, const Recipe& recipe, SampleStream& stream, std::uint64_t seed,
                         std::uint64_t first_position, Batch& batch);
// Fills an evaluation batch from test images [first, first + batch.count) on `threads` threads. Damaged files that are
// to be skipped are left out: batch.count is less then, 0 perhaps. Throws as above.
void fill_evaluation_batch(const Dataset& data, const Recipe& recipe, std::size_t first, Batch& batch, int threads = 1);

// Prefetches training batches on threads of its own, one ahead: next() waits for step k's batch, which stays valid
// until the following call. The batches do not depend on the number of threads. Destruction joins them. next() and
// peek() are called from one thread, steps ascending by one from `first_step`; next() throws what filling a batch
// threw.
//
// The batches lie in host memory of the engine's home, taken once, so that an engine may copy the one that peek() shows
// while it computes another (Engine::prefetch): none is filled anew before two more were handed out.
class BatchSource {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::uint64_t global_batch = 0;
    Share share;
    std::uint64_t first_step = 0;
    std::uint64_t last_step = 0;  // exclusive
    Recipe recipe;
    int threads = 1;                // 1 at least
    kernels::Home* home = nullptr;  // where the engine computes; outlives this. Null: ordinary memory
  };
  BatchSource(std::shared_ptr<const Dataset> data, const Options& options);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  const Batch& next();
  // What the following next() will return, if it is filled by now; null if it is not, and after the last step. Does not
  // wait.
  const Batch* peek() const;
  // How long next() has waited for data, all calls together. Any thread.
  double waited_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::engine

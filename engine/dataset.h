// Datasets, and the stream of samples that training takes from them.
//
// A dataset knows its samples' shape (or that it varies), its classes, and each sample as stored: bytes (CHW) or floats
// in memory, or pictures that are decoded or drawn on demand. It is immutable once loaded, and any thread may read it.
// A recipe (recipe.h) turns a stored sample into the engine's input.
// The sample stream is the concatenation of per-epoch permutations drawn from the seed; step k takes positions
// [k*B, (k+1)*B), members take consecutive parts by rank. Augmentation is keyed by (seed, position), never by rank.
//
//   data            files in data-dir (each plain or .gz, except for folder and npy)
//   synthetic       none, see engine/data/digits; fractals: none, see engine/data/fractals
//   mnist           train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., in data-dir or its mnist/
//   cifar10, cifar100   the binary batches, in data-dir or its cifar-10-batches-bin/, cifar-100-binary/
//   idx             one file each with train-images, train-labels, t10k-images, t10k-labels in its name
//   npy             x_train.npy, y_train.npy, x_test.npy, y_test.npy, or x.npy, y.npy: files/array_sets.h
//   folder          JPEG and PNG, a folder per class: folder/list.h
//
// If idx, npy or folder have no test set, test_share of each class is held back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/choices.h"
#include "engine/data/file_sums.h"
#include "engine/engine.h"
#include "engine/recipe.h"
#include "kernels/base/status.h"
#include "kernels/memory_space.h"

namespace tg::engine {

class PictureSource;

// The samples are in one of pixels, values and source.
struct ImageSet {
  ImageShape stored;                            // height = width = 0 if it varies
  std::vector<std::uint8_t> pixels;             // count * stored.elements()
  std::vector<float> values;                    // count * stored.elements(), finite
  std::shared_ptr<const PictureSource> source;  // pictures of 1 or 3 channels
  std::vector<std::uint16_t> labels;
  std::size_t count() const { return labels.size(); }
};

// Files that could not be decoded and were skipped. Any thread.
class DamagedFiles {
 public:
  void add(const std::string& message);
  std::size_t count() const;                  // how often a file was skipped
  std::vector<std::string> messages() const;  // one for each of the first few files; each names its file

 private:
  mutable std::mutex mutex_;
  std::size_t count_ = 0;
  std::vector<std::string> messages_;
};

// Files in the classes' folders that are no pictures.
struct LeftOutFiles {
  std::size_t count = 0;
  std::string first;  // from the data's folder on
};

struct Dataset {
  DatasetKind kind = DatasetKind::kSynthetic;
  ImageSet train, test;
  std::vector<std::string> classes;  // their names; label c is classes[c]
  Damaged damaged = Damaged::kFatal;
  LeftOutFiles left_out;
  std::shared_ptr<DamagedFiles> skipped = std::make_shared<DamagedFiles>();
  // Covers file bytes (decompressed) and, for folders, names; or generator version, seed, sizes and some of the images.
  std::uint64_t hash = 0;
  // Its files, to say in which of them two nodes' sets differ; none for generated sets.
  FileSums files;
  EachName file_names = [](const std::function<void(const std::string&)>&) {};
};

struct DatasetOptions {
  DatasetKind kind = DatasetKind::kSynthetic;
  std::string directory;   // folder of the files; unused by generated sets
  std::uint64_t seed = 1;  // seed of generated sets (train and test use disjoint streams) and of held-back samples
  std::size_t synthetic_train = 0;  // images of a generated set; 0 = the generator's default
  std::size_t synthetic_test = 0;
  double test_share = 0;  // share of each class held back for testing; 0 = the data have a test set
  Damaged damaged = Damaged::kFatal;
  int classes = 0;              // classes of fractals; 0 = the default
  int size = 0;                 // pixels of the fractals' sides; 0 = the default
  int threads = 1;              // threads that read, decode and draw
  std::string memory_dir = {};  // where to remember what was found out of pictures; empty = nowhere
  // Called while a set is drawn or examined, by any of the threads: so many images of so many are done (of 0: not
  // known). What it throws passes through.
  std::function<void(std::size_t done, std::size_t of)> advanced = [](std::size_t, std::size_t) {};
};

// Errors name the file, what is wrong with it and what to do.
Result<std::shared_ptr<const Dataset>> load_dataset(const DatasetOptions& options);

// The samples' shape and the classes, for sets where they are fixed or generated; nothing if only the files know.
struct SetShape {
  ImageShape stored;
  int classes = 0;
};
std::optional<SetShape> known_shape(const DatasetOptions& options);
// The input shape of a model for data stored in this shape. It is the same shape, except for
//   folder: pictures with sides of `size` if that is not 0, or of the published size if they differ in size;
//   CifarNet on CIFAR: windows of its published size, as in the paper.
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
// Consecutive parts by rank, in proportion to the weights (each at least 1). Samples left over by the quotas' whole
// numbers go one each to the largest remainders, the lower rank first among equals. Every member gets a sample as long
// as there are enough. Whole numbers only, so all members compute the same. With equal weights, parts differ by at most
// one, the longer ones first.
std::vector<Share> split(std::uint64_t total, std::span<const std::uint16_t> weights);

// An error unless every label is below `classes`. Called once per run; the fill functions rely on it.
Status check_labels(const Dataset& data, int classes);

// Fills a training batch from stream positions [first, first + batch.count). A damaged file that is to be skipped is
// replaced by the next sample of the set. Throws std::runtime_error naming a damaged file that is fatal, or if only
// damaged files follow. advanced: called after each sample; what it throws passes through.
void fill_training_batch(
    const Dataset& data, const Recipe& recipe, SampleStream& stream, std::uint64_t seed, std::uint64_t first_position,
    Batch& batch, const std::function<void()>& advanced = [] {});
// Fills an evaluation batch from test images [first, first + batch.count) on `threads` threads. Damaged files that are
// to be skipped are left out: batch.count is then less, possibly 0. Throws as above.
void fill_evaluation_batch(const Dataset& data, const Recipe& recipe, std::size_t first, Batch& batch, int threads = 1);

// Prefetches training batches on threads of its own, one ahead: next() waits for step k's batch, which stays valid
// until the following call. The batches do not depend on the number of threads. Destruction joins them. next() and
// peek() are called from one thread, steps ascending by one from `first_step`, or from where seek() went; next() throws
// what filling a batch threw.
//
// The batches lie in host memory of the engine's memory space, allocated once, so that an engine may copy the one that
// peek() shows while it computes another (Engine::prefetch): a batch is refilled only after two more were handed out.
class BatchSource {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::uint64_t global_batch = 0;
    Share share;
    std::uint64_t first_step = 0;
    std::uint64_t last_step = 0;  // exclusive
    Recipe recipe;
    int threads = 1;                        // at least 1
    kernels::MemorySpace* space = nullptr;  // the engine's memory space, which must outlive this; null: ordinary memory
  };
  BatchSource(std::shared_ptr<const Dataset> data, const Options& options);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  const Batch& next();
  // The batch that the following next() will return, if it is already filled; null if not, and after the last step.
  // Does not wait.
  const Batch* peek() const;
  std::uint64_t next_step() const;  // the step that the following next() returns
  // The following next() returns the batch of this step, from first_step to before last_step. The batches that were
  // handed out and shown are dropped: they are not read any more. The last one and the next one are kept where they
  // serve. Called by next()'s thread; waits for the samples that are being filled.
  void seek(std::uint64_t step);
  // The total time that next() has waited for data. Any thread.
  double waited_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::engine

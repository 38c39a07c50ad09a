#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "engine/data/fill_sample.h"
#include "engine/data/limits.h"
#include "engine/data/parallel.h"
#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

std::span<float> sample_of(Batch& batch, const Recipe& recipe, std::size_t i) {
  return batch.images.span().subspan(i * recipe.input.elements(), recipe.input.elements());
}

// Throws unless the file is damaged and damaged files are skipped: a file that cannot be read now may be good.
void skip(const Dataset& data, const Error& error) {
  if (data.damaged == Damaged::kFatal || error.kind != ErrorKind::kCorrupt) throw std::runtime_error(error.message);
  data.skipped->add(error.message);
}

}  // namespace

void shape_batch(const Recipe& recipe, Batch& batch, kernels::MemorySpace* space) {
  TG_CHECK(batch.count >= 0, batch.count);
  const std::size_t elements = static_cast<std::size_t>(batch.count) * recipe.input.elements();
  if (batch.images.size() != elements)
    batch.images = space == nullptr ? AlignedArray<float>(elements) : space->allocate_host(elements);
  batch.labels.resize(static_cast<std::size_t>(batch.count));
}

void fill_training_sample(const Dataset& data, const Recipe& recipe, std::uint64_t seed, std::uint64_t position,
                          std::size_t image, Scratch& scratch, Batch& batch, std::size_t i) {
  const std::size_t count = data.train.count();
  for (std::size_t skipped = 0; skipped <= std::min(kMaxDamagedInARow, count - 1); ++skipped) {
    const std::size_t taken = (image + skipped) % count;
    Draws draws(seed, DrawDomain::kAugment, position);
    const Status made = make_input(data.train, taken, recipe, &draws, scratch, sample_of(batch, recipe, i));
    if (made.ok()) {
      batch.labels[i] = data.train.labels[taken];
      return;
    }
    skip(data, made.error());
  }
  throw std::runtime_error("only damaged files in a row: " + data.skipped->messages().front());
}

Status check_labels(const Dataset& data, int classes) {
  for (const ImageSet* set : {&data.train, &data.test}) {
    for (const std::uint16_t label : set->labels) {
      if (label >= classes) {
        return Error{ErrorKind::kInvalidJob, std::string("data = ") + to_word(data.kind) + " has label " +
                                                 std::to_string(label) + " and the model only " +
                                                 std::to_string(classes) +
                                                 " classes; choose data and model that match"};
      }
    }
  }
  return {};
}

void fill_training_batch(const Dataset& data, const Recipe& recipe, SampleStream& stream, std::uint64_t seed,
                         std::uint64_t first_position, Batch& batch, const std::function<void()>& advanced) {
  shape_batch(recipe, batch);
  batch.first_position = first_position;
  Scratch scratch;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const std::uint64_t position = first_position + i;
    fill_training_sample(data, recipe, seed, position, stream.sample(position), scratch, batch, i);
    advanced();
  }
}

void fill_evaluation_batch(const Dataset& data, const Recipe& recipe, std::size_t first, Batch& batch, int threads) {
  shape_batch(recipe, batch);
  const std::size_t count = batch.labels.size();
  TG_CHECK(first + count <= data.test.count(), first, batch.count, data.test.count());
  const std::size_t parts = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<char> good(count);
  for_each_index(parts, threads, [&](std::size_t part) {
    Scratch scratch;
    for (std::size_t i = part; i < count; i += parts) {
      const Status made = make_input(data.test, first + i, recipe, nullptr, scratch, sample_of(batch, recipe, i));
      good[i] = made.ok() ? 1 : 0;
      batch.labels[i] = data.test.labels[first + i];
      if (made.ok()) continue;
      skip(data, made.error());
    }
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (good[i] == 0) continue;
    if (kept != i) std::ranges::copy(sample_of(batch, recipe, i), sample_of(batch, recipe, kept).begin());
    batch.labels[kept++] = batch.labels[i];
  }
  batch.count = static_cast<int>(kept);
  batch.labels.resize(kept);
}

}  // namespace tg::engine

#include <span>
#include <string>

#include "engine/data/augment.h"
#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

std::string text_of(const ImageShape& shape) {
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

bool fits(const Dataset& data, const ImageShape& input) {
  const ImageShape& stored = data.train.stored;
  if (data.preprocessing == Preprocessing::kSymmetric) return input == stored;
  return input.channels == stored.channels && input.height > 0 && input.height <= stored.height && input.width > 0 &&
         input.width <= stored.width;
}

void shape_batch(const ImageShape& input, Batch& batch) {
  TG_CHECK(batch.count >= 0, batch.count);
  const std::size_t elements = static_cast<std::size_t>(batch.count) * input.elements();
  if (batch.images.size() != elements) batch.images = AlignedArray<float>(elements);
  batch.labels.resize(static_cast<std::size_t>(batch.count));
}

std::span<const std::uint8_t> pixels_of(const ImageSet& set, std::size_t image) {
  const std::size_t elements = set.stored.elements();
  return std::span(set.pixels).subspan(image * elements, elements);
}

}  // namespace

Status check_input(const Dataset& data, const ImageShape& input, int classes) {
  if (!fits(data, input)) {
    return Error{ErrorKind::kInvalidJob, std::string("data = ") + to_word(data.kind) + " has images of " +
                                             text_of(data.train.stored) + " and the model takes " + text_of(input) +
                                             "; choose data and model that belong together"};
  }
  for (const ImageSet* set : {&data.train, &data.test}) {
    for (const std::uint8_t label : set->labels) {
      if (label >= classes) {
        return Error{ErrorKind::kInvalidJob, std::string("data = ") + to_word(data.kind) + " has label " +
                                                 std::to_string(label) + " and the model only " +
                                                 std::to_string(classes) +
                                                 " classes; choose data and model that belong together"};
      }
    }
  }
  return {};
}

void fill_training_batch(const Dataset& data, SampleStream& stream, std::uint64_t seed, std::uint64_t first_position,
                         const ImageShape& input, Batch& batch) {
  TG_CHECK(fits(data, input), to_word(data.kind));
  shape_batch(input, batch);
  batch.first_position = first_position;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const std::uint64_t position = first_position + i;
    const std::size_t image = stream.sample(position);
    const auto pixels = pixels_of(data.train, image);
    const auto out = batch.images.span().subspan(i * input.elements(), input.elements());
    if (data.preprocessing == Preprocessing::kSymmetric) {
      symmetric(pixels, out);
    } else {
      augment(pixels, data.train.stored, input, draw_augmentation(seed, position, data.train.stored, input), out);
    }
    batch.labels[i] = data.train.labels[image];
  }
}

void fill_evaluation_batch(const Dataset& data, std::size_t first, const ImageShape& input, Batch& batch) {
  TG_CHECK(fits(data, input), to_word(data.kind));
  shape_batch(input, batch);
  TG_CHECK(first + batch.labels.size() <= data.test.count(), first, batch.count, data.test.count());
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const auto pixels = pixels_of(data.test, first + i);
    const auto out = batch.images.span().subspan(i * input.elements(), input.elements());
    if (data.preprocessing == Preprocessing::kSymmetric) {
      symmetric(pixels, out);
    } else {
      augment(pixels, data.test.stored, input, centre_crop(data.test.stored, input), out);
    }
    batch.labels[i] = data.test.labels[first + i];
  }
}

}  // namespace tg::engine

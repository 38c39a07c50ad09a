#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include "engine/data/limits.h"
#include "engine/data/parallel.h"
#include "engine/data/recipe/make_input.h"
#include "engine/data/text_of.h"
#include "engine/dataset.h"
#include "engine/recipe.h"

namespace tg::engine {
namespace {

Error invalid(const Dataset& data, const std::string& what) {
  return {ErrorKind::kInvalidJob, std::string("data = ") + to_word(data.kind) + " " + what};
}

bool same_size(const ImageShape& a, const ImageShape& b) { return a.height == b.height && a.width == b.width; }

bool is_cifar(DatasetKind data) { return data == DatasetKind::kCifar10 || data == DatasetKind::kCifar100; }

// The recipe that suits the data, used where the job says nothing.
Recipe usual_recipe(const Dataset& data, const ImageShape& input) {
  Recipe recipe;
  recipe.input = input;
  recipe.floats = !data.train.values.empty();
  const ImageShape& stored = data.train.stored;
  if (recipe.floats || data.kind == DatasetKind::kNpy) {
    recipe.normalization = Normalization::kMeasured;
    return recipe;
  }
  const bool cifar = is_cifar(data.kind);
  if (!cifar && data.kind != DatasetKind::kFolder) {
    recipe.normalization = Normalization::kSymmetric;
    return recipe;
  }
  recipe.flip = Flip::kHorizontal;
  recipe.normalization = Normalization::kMeasured;
  recipe.crop = Crop::kWindow;
  if (same_size(stored, input)) {
    recipe.padding = std::max(input.height, input.width) / 8;
  } else if (cifar) {
    recipe.colour = Colour::kPaper;
    recipe.normalization = Normalization::kPerImage;
  } else {
    recipe.crop = Crop::kArea;
    recipe.resize = std::max(input.height, input.width) * 8 / 7;
  }
  return recipe;
}

Status check_floats(const Dataset& data, const Recipe& recipe) {
  const bool pictures =
      recipe.crop != Crop::kNone || recipe.flip != Flip::kNone || recipe.colour != Colour::kNone || recipe.resize != 0;
  if (pictures) return invalid(data, "has samples of floats; crop, resize, flip and colour are for pictures of bytes");
  if (recipe.normalization == Normalization::kSymmetric || recipe.normalization == Normalization::kPerImage)
    return invalid(data, std::string("has samples of floats; normalization can be none, given or measured, not ") +
                             to_word(recipe.normalization));
  return {};
}

Status check_shape(const Dataset& data, const Recipe& recipe, const RecipeOptions& options) {
  const ImageShape &stored = data.train.stored, &input = recipe.input;
  const Error misfit = invalid(data, "has images of " + shape_text(stored) + " and the model takes " +
                                         shape_text(input) + "; choose data and model that match");
  const bool converts = data.kind == DatasetKind::kFolder && (input.channels == 1 || input.channels == 3);
  if (input.elements() == 0 || (input.channels != stored.channels && !converts)) return misfit;
  if (!data.train.values.empty()) return input == stored ? check_floats(data, recipe) : Status(misfit);
  if (recipe.resize != 0) {
    const int least = std::max(input.height, input.width);
    if (recipe.resize >= least) return {};
    return invalid(data, "would be resized to " + std::to_string(recipe.resize) + " pixels and the model takes " +
                             std::to_string(least) + "; set resize to that or more");
  }
  if (stored.height == 0) return invalid(data, "has pictures of different sizes: set resize, or leave it to be chosen");
  const bool smaller = input.height <= stored.height && input.width <= stored.width;
  const bool crops = recipe.crop != Crop::kNone || options.crop.has_value();
  if (!smaller || (input != stored && !crops && data.kind != DatasetKind::kFolder)) return misfit;
  return {};
}

// The given numbers: one for all channels, or one for each.
Result<std::vector<float>> numbers_of(const Dataset& data, const std::vector<double>& given, const char* key,
                                      int channels) {
  const auto wanted = static_cast<std::size_t>(channels);
  if (given.size() != 1 && given.size() != wanted) {
    return invalid(data, "with normalization = given needs " + std::string(key) + " with one number, or " +
                             std::to_string(channels) + ", and it has " + std::to_string(given.size()));
  }
  std::vector<float> numbers;
  for (std::size_t c = 0; c < wanted; ++c) numbers.push_back(static_cast<float>(given[given.size() == 1 ? 0 : c]));
  return numbers;
}

// unit: the divisor not yet applied to the values.
void add_channel(double mean, double variance, double unit, Recipe& recipe) {
  const float deviation = variance > 0 ? static_cast<float>(std::sqrt(variance) / unit) : 0.0f;
  recipe.mean.push_back(static_cast<float>(mean / unit));
  recipe.deviation.push_back(deviation > 0 ? deviation : 1.0f);
}

void measure_floats(const ImageSet& set, Recipe& recipe) {
  const auto channels = static_cast<std::size_t>(recipe.input.channels);
  const std::size_t elements = set.stored.elements(), plane = elements / channels;
  const double count = static_cast<double>(set.count()) * static_cast<double>(plane);
  std::vector<double> mean(channels), squares(channels);
  for (std::size_t i = 0; i < set.values.size(); ++i) mean[i % elements / plane] += set.values[i];
  for (double& m : mean) m /= count;
  for (std::size_t i = 0; i < set.values.size(); ++i) {
    const std::size_t c = i % elements / plane;
    squares[c] += (set.values[i] - mean[c]) * (set.values[i] - mean[c]);
  }
  for (std::size_t c = 0; c < channels; ++c) add_channel(mean[c], squares[c] / count, 1, recipe);
}

// Measures with sums of whole numbers, which are the same in any order. Damaged pictures are left out; if they are
// fatal, training names them.
void measure_bytes(const ImageSet& set, int threads, const std::function<void()>& advanced, Recipe& recipe) {
  const bool decoded = set.source != nullptr;
  const std::size_t count = decoded ? std::min(set.count(), kMaxMeasuredPictures) : set.count();
  const auto channels = static_cast<std::size_t>(recipe.input.channels);
  std::vector<std::uint64_t> sums(channels), squares(channels);
  std::uint64_t values = 0;
  std::mutex mutex;
  const std::size_t piece = decoded ? 1 : 1000;
  for_each_index((count + piece - 1) / piece, threads, [&](std::size_t at) {
    Scratch scratch;
    std::vector<std::uint64_t> sum(channels), square(channels);
    std::uint64_t seen = 0;
    advanced();
    for (std::size_t i = at * piece; i < std::min((at + 1) * piece, count); ++i) {
      const auto bytes = make_bytes(set, i * set.count() / count, recipe, nullptr, scratch);
      if (!bytes) continue;
      const PictureView& view = *bytes;
      seen += static_cast<std::uint64_t>(view.height) * static_cast<std::uint64_t>(view.width);
      for (std::size_t c = 0; c < channels; ++c) {
        for (int y = 0; y < view.height; ++y) {
          const std::uint8_t* from = view.line(static_cast<int>(c), y);
          for (int x = 0; x < view.width; ++x, from += view.column) {
            sum[c] += *from;
            square[c] += static_cast<std::uint64_t>(*from) * *from;
          }
        }
      }
    }
    const std::lock_guard lock(mutex);
    values += seen;
    for (std::size_t c = 0; c < channels; ++c) {
      sums[c] += sum[c];
      squares[c] += square[c];
    }
  });
  const double all = static_cast<double>(std::max<std::uint64_t>(values, 1));
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / all;
    add_channel(mean, static_cast<double>(squares[c]) / all - mean * mean, 255, recipe);
  }
}

}  // namespace

Result<Recipe> make_recipe(const Dataset& data, const ImageShape& input, const RecipeOptions& options, int threads,
                           const std::function<void()>& advanced) {
  Recipe recipe = usual_recipe(data, input);
  if (options.crop && *options.crop != recipe.crop) {
    recipe.crop = *options.crop;
    recipe.padding = 0;
  }
  recipe.padding = options.padding.value_or(recipe.padding);
  recipe.resize = options.resize.value_or(recipe.resize);
  recipe.flip = options.flip.value_or(recipe.flip);
  recipe.colour = options.colour.value_or(recipe.colour);
  recipe.normalization = options.normalization.value_or(recipe.normalization);
  recipe.resize_shape = options.resize_shape;
  if (recipe.crop == Crop::kArea) recipe.least_area = options.least_area;
  if (recipe.colour == Colour::kJitter) {
    recipe.colour_strength = options.colour_strength;
    recipe.colour_hue = options.colour_hue;
  }
  if (input.height > kMaxInputSide || input.width > kMaxInputSide)
    return invalid(data, "is asked for pictures of " + shape_text(input) + "; at most " +
                             std::to_string(kMaxInputSide) + " pixels a side");
  if (const Status fits = check_shape(data, recipe, options); !fits) return fits.error();
  if (recipe.padding != 0 && recipe.crop != Crop::kWindow)
    return invalid(data, std::string("with crop = ") + to_word(recipe.crop) + " does not use crop-padding");
  if (recipe.resize_shape == ResizeShape::kSquare && recipe.resize == 0)
    return invalid(data, "is not resized, and resize-shape says how; set resize, or leave resize-shape out");
  if (recipe.crop != Crop::kArea && options.least_area != RecipeOptions().least_area)
    return invalid(data, std::string("with crop = ") + to_word(recipe.crop) + " does not use least-area");
  if (recipe.colour != Colour::kJitter && options.colour_hue != 0)
    return invalid(data, std::string("with colour = ") + to_word(recipe.colour) + " does not use colour-hue");
  if (recipe.colour != Colour::kNone && input.channels != 1 && input.channels != 3)
    return invalid(data, "has " + std::to_string(input.channels) + " channels; colour is for 1 or 3");
  if (recipe.normalization == Normalization::kGiven) {
    auto mean = numbers_of(data, options.mean, "mean", input.channels);
    if (!mean) return mean.error();
    auto deviation = numbers_of(data, options.deviation, "deviation", input.channels);
    if (!deviation) return deviation.error();
    recipe.mean = *std::move(mean);
    recipe.deviation = *std::move(deviation);
    if (std::ranges::any_of(recipe.deviation, [](float d) { return !(d > 0); }))
      return invalid(data, "with normalization = given needs deviations above 0");
  } else if (recipe.normalization == Normalization::kMeasured) {
    if (data.train.values.empty())
      measure_bytes(data.train, threads, advanced, recipe);
    else
      measure_floats(data.train, recipe);
  }
  return recipe;
}

ImageShape input_of(DatasetKind data, const ImageShape& stored, ModelKind model, int size) {
  const ImageShape published = published_input(model);
  ImageShape shape = stored;
  if (data == DatasetKind::kFolder && size != 0) {
    shape.height = shape.width = size;
  } else if (stored.height == 0 || (is_cifar(data) && model == ModelKind::kCifarnet)) {
    shape.height = published.height;
    shape.width = published.width;
  }
  return shape;
}

}  // namespace tg::engine

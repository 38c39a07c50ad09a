#include "engine/data/fractals/fractals.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/limits.h"
#include "engine/data/parallel.h"

namespace tg::engine {
namespace {

constexpr double kStrengths[] = {0.1, 0.05, 0.025, 0};  // tried for a variant until its orbit is bounded
constexpr std::uint32_t kMinInk = 96;       // the least value of each colour at a pixel that is hit very often
constexpr std::size_t kHashedPictures = 8;  // pictures of each set

// Draws the points of a picture's orbit; uses the class's own maps if no variant has a bounded orbit.
void draw_points(const AffineMaps& maps, Draws& draws, std::vector<OrbitPoint>& points) {
  for (const double strength : kStrengths) {
    if (walk(draw_variant(maps, strength, draws), draws, points)) return;
  }
  std::ranges::fill(points, OrbitPoint{});
}

class FractalSource final : public PictureSource {
 public:
  FractalSource(std::shared_ptr<const std::vector<AffineMaps>> classes, std::uint64_t seed, DrawDomain domain, int size)
      : classes_(std::move(classes)), seed_(seed), domain_(domain), size_(size) {}

  Status read(std::size_t index, const Shrink& shrink, Picture& picture) const override {
    shrink(size_, size_);
    draw_fractal((*classes_)[index % classes_->size()], seed_, domain_, index, size_, picture);
    return {};
  }

 private:
  const std::shared_ptr<const std::vector<AffineMaps>> classes_;
  const std::uint64_t seed_;
  const DrawDomain domain_;
  const int size_;
};

// The requested sizes, checked, with the defaults filled in.
struct Sizes {
  std::size_t classes, train, test;
  int side;
};

Result<Sizes> sizes_of(const DatasetOptions& options) {
  const auto out_of_range = [](const char* key, std::size_t value, std::size_t least, std::size_t most) {
    return Error{ErrorKind::kInvalidJob, std::string(key) + " = " + std::to_string(value) +
                                             " with data = fractals: it can be " + std::to_string(least) + " to " +
                                             std::to_string(most)};
  };
  Sizes sizes{};
  sizes.classes = static_cast<std::size_t>(options.classes != 0 ? options.classes : kFractalClasses);
  sizes.side = options.size != 0 ? options.size : kFractalSize;
  sizes.train = options.synthetic_train != 0 ? options.synthetic_train : sizes.classes * kFractalTrainPerClass;
  sizes.test = options.synthetic_test != 0 ? options.synthetic_test : sizes.classes * kFractalTestPerClass;
  if (sizes.classes < 2 || sizes.classes > kMaxClasses)
    return out_of_range("data-classes", sizes.classes, 2, kMaxClasses);
  if (sizes.side < kMinFractalSize || sizes.side > kMaxInputSide)
    return out_of_range("image-size", static_cast<std::size_t>(sizes.side), kMinFractalSize, kMaxInputSide);
  if (sizes.train > kMaxSamples) return out_of_range("data-train", sizes.train, 1, kMaxSamples);
  if (sizes.test > kMaxSamples) return out_of_range("data-test", sizes.test, 1, kMaxSamples);
  return sizes;
}

ImageSet make_set(std::shared_ptr<const std::vector<AffineMaps>> classes, std::uint64_t seed, DrawDomain domain,
                  std::size_t count, int side, ContentHash& hash) {
  ImageSet set;
  set.stored = {3, side, side};
  set.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) set.labels[i] = static_cast<std::uint16_t>(i % classes->size());
  Picture picture;
  for (std::size_t i = 0; i < std::min(kHashedPictures, count); ++i) {
    const std::size_t index = i * count / std::min(kHashedPictures, count);
    draw_fractal((*classes)[index % classes->size()], seed, domain, index, side, picture);
    hash.add(picture.pixels);
  }
  set.source = std::make_shared<FractalSource>(std::move(classes), seed, domain, side);
  return set;
}

}  // namespace

void draw_fractal(const AffineMaps& maps, std::uint64_t seed, DrawDomain domain, std::uint64_t index, int size,
                  Picture& picture) {
  Draws draws(seed, domain, index);
  std::uint32_t ink[3];
  for (std::uint32_t& colour : ink) colour = kMinInk + draws.below(256 - kMinInk);
  std::vector<OrbitPoint> points(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  draw_points(maps, draws, points);
  std::vector<std::uint32_t> hits;
  count_hits(points, size, hits);
  picture.shape(3, size, size);
  std::uint8_t* to = picture.pixels.data();
  for (const std::uint32_t h : hits) {
    const std::uint32_t level = 255 * h / (h + 1);  // 0, 127, 170, 191, ...
    for (const std::uint32_t colour : ink) *to++ = static_cast<std::uint8_t>(level * colour / 255);
  }
}

Result<Dataset> make_fractals(const DatasetOptions& options) {
  const Result<Sizes> sizes = sizes_of(options);
  if (!sizes) return sizes.error();
  const auto classes = std::make_shared<std::vector<AffineMaps>>(sizes->classes);
  for_each_index(classes->size(), options.threads, [&](std::size_t c) { (*classes)[c] = draw_maps(options.seed, c); });
  ContentHash hash;
  for (const std::uint64_t word :
       {std::uint64_t{kFractalsVersion}, options.seed, std::uint64_t{sizes->classes}, std::uint64_t{sizes->train},
        std::uint64_t{sizes->test}, static_cast<std::uint64_t>(sizes->side)})
    hash.add(word);
  Dataset data;
  data.kind = DatasetKind::kFractals;
  for (std::size_t c = 0; c < classes->size(); ++c) {
    if ((*classes)[c].empty())
      return Error{ErrorKind::kFailed, "found no fractal for class " + std::to_string(c) + "; set another data-seed"};
    for (const AffineMap& map : (*classes)[c])
      hash.add(std::span(reinterpret_cast<const std::uint8_t*>(map.data()), sizeof map));
    data.classes.push_back("fractal-" + std::to_string(c));
  }
  data.train = make_set(classes, options.seed, DrawDomain::kFractalTrain, sizes->train, sizes->side, hash);
  data.test = make_set(classes, options.seed, DrawDomain::kFractalTest, sizes->test, sizes->side, hash);
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine

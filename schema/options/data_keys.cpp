#include "schema/options/data_keys.h"

#include <string>
#include <utility>

#include "schema/limits.h"
#include "schema/options/option_rows.h"

namespace tg::schema {
namespace {

constexpr std::uint64_t kMaxImages = 1u << 24;
constexpr std::uint64_t kMaxClasses = 65'535;
constexpr std::uint64_t kMaxImageSize = 1024;  // pixels of a side of a model's input
constexpr std::uint64_t kMaxResize = 2 * kMaxImageSize;
constexpr std::size_t kMaxChannels = 64;  // channels with numbers of their own
constexpr double kMaxTestShare = 0.9;

using Row = Option<JobSpec>;

Row numbers_row(std::string name, std::vector<double> JobSpec::*field, RealRange range, std::string help) {
  return list_row(std::move(name), field, real_row("", &JobSpec::test_share, range, ""), &JobSpec::test_share,
                  kMaxChannels, "a number per channel, or one for all, such as 0.485,0.456,0.406", std::move(help));
}

void add_set_keys(std::vector<Row>& rows) {
  rows.push_back(choice_row("data", &JobSpec::data,
                            "The training and test set. synthetic and fractals need no files; folder: JPEG or PNG "
                            "pictures, a folder per class, directly or in train/ and test/ (or val/), or as listed in "
                            "train.txt and test.txt; npy: x_train.npy, y_train.npy, x_test.npy, y_test.npy; idx: files "
                            "with train-images, train-labels, t10k-images, t10k-labels in their names."));
  rows.push_back(path_row("data-dir", &JobSpec::data_dir, kMaxPathBytes,
                          "Folder with the data on every node; empty = each node's own data-dir."));
  rows.push_back(whole_row(
      "data-seed", &JobSpec::data_seed, {},
      "Seed for generating synthetic and fractals, and for choosing the samples that test-share holds back."));
  rows.push_back(whole_row("data-train", &JobSpec::data_train, {0, kMaxImages},
                           "Training images of synthetic and fractals; 0 = the generator's default."));
  rows.push_back(whole_row("data-test", &JobSpec::data_test, {0, kMaxImages},
                           "Test images of synthetic and fractals; 0 = the generator's default."));
  rows.push_back(whole_row("data-classes", &JobSpec::data_classes, {0, kMaxClasses},
                           "Number of classes of fractals; 0 = the generator's default."));
  rows.push_back(whole_row("image-size", &JobSpec::image_size, {0, kMaxImageSize},
                           "Side length of pictures in pixels, for fractals and folder; 0 = that of the files or, if "
                           "they differ, the size that the model was published with."));
  rows.push_back(real_row("test-share", &JobSpec::test_share, {0, kMaxTestShare, false, false},
                          "folder, npy, idx without a test set: share of each class that is held back for testing."));
  rows.push_back(
      choice_row("damaged", &JobSpec::damaged,
                 "folder: whether a picture that cannot be decoded ends the run, or is logged and skipped."));
}

void add_recipe_keys(std::vector<Row>& rows) {
  rows.push_back(choice_row(
      "crop", &JobSpec::crop,
      "The part of a picture that is trained on: its middle, as in evaluation (none), a window of the input's size at "
      "a random place (window), or a random part of at least least-area, resized (area); auto: as suits the data."));
  rows.push_back(real_row("least-area", &JobSpec::least_area, {0.01, 1, false, false},
                          "crop = area: the smallest share of a picture's area that a part has."));
  rows.push_back(whole_row("crop-padding", &JobSpec::crop_padding, {0, kMaxImageSize},
                           "crop = window: black pixels added on every side first; 0 = as suits the data."));
  rows.push_back(whole_row("resize", &JobSpec::resize, {0, kMaxResize},
                           "Resize a picture's shorter side to this many pixels before its middle or a window is "
                           "taken; 0 = no resizing, or 8/7 of the input if a folder's pictures have other sizes."));
  rows.push_back(choice_row("resize-shape", &JobSpec::resize_shape,
                            "How resize treats a picture: aspect keeps its aspect ratio; square makes both sides "
                            "equally long, as Caffe does for AlexNet."));
  rows.push_back(choice_row("flip", &JobSpec::flip,
                            "Whether training flips half of the pictures left to right; auto: as suits the data."));
  rows.push_back(
      choice_row("colour", &JobSpec::colour,
                 "Colour augmentation: brightness and contrast as for the paper's CifarNet (paper), or brightness, "
                 "contrast and saturation by colour-strength, hue by colour-hue (jitter); auto: as suits the data."));
  rows.push_back(real_row("colour-strength", &JobSpec::colour_strength, {0, 1, false, false},
                          "colour = jitter: factors are drawn from 1 - strength to 1 + strength."));
  rows.push_back(
      real_row("colour-hue", &JobSpec::colour_hue, {0, 0.5, false, false},
               "colour = jitter: largest shift of the hue to either side, as a share of the colour circle; 0 = none."));
  rows.push_back(choice_row("normalization", &JobSpec::normalization,
                            "How values are scaled: bytes to x / 255 (none), the same from -1 to 1 (symmetric), each "
                            "sample to mean 0 and standard deviation 1 (per-image), or each channel by a mean and "
                            "deviation that are given or measured on the training set; auto: as suits the data."));
  constexpr double kMaxValue = 1e30;
  rows.push_back(numbers_row("mean", &JobSpec::mean, {-kMaxValue, kMaxValue, false, false},
                             "normalization = given: subtracted from x / 255, or from samples of floats."));
  rows.push_back(numbers_row("deviation", &JobSpec::deviation, {0, kMaxValue, true, false},
                             "normalization = given: the result is divided by this."));
}

Error refused(std::string message) { return {ErrorKind::kInvalidJob, std::move(message)}; }

}  // namespace

void add_data_keys(std::vector<Option<JobSpec>>& rows) {
  add_set_keys(rows);
  add_recipe_keys(rows);
}

Status validate_data_keys(const JobSpec& spec) {
  const std::string data = std::string("; data is ") + to_word(spec.data);
  const bool drawn = spec.data == DatasetKind::kSynthetic || spec.data == DatasetKind::kFractals;
  const bool folder = spec.data == DatasetKind::kFolder, fractals = spec.data == DatasetKind::kFractals;
  const bool open = folder || spec.data == DatasetKind::kNpy || spec.data == DatasetKind::kIdx;
  if (!spec.data_dir.empty() && !spec.data_dir.starts_with('/'))
    return refused("data-dir = " + spec.data_dir +
                   " is relative, and each node would look from where its tgd was started; write it from / on, such "
                   "as /srv/" +
                   spec.data_dir);
  if (!drawn && (spec.data_train > 0 || spec.data_test > 0))
    return refused("data-train and data-test size the synthetic set and fractals" + data);
  if (!fractals && spec.data_classes > 0) return refused("data-classes sizes fractals" + data);
  if (!fractals && !folder && spec.image_size > 0) return refused("image-size is for fractals and folder" + data);
  if (!open && spec.test_share > 0) return refused("test-share is for folder, npy and idx" + data);
  if (!folder && spec.damaged != Damaged::kFatal) return refused("damaged is for folder" + data);
  const bool given = spec.normalization == Normalization::kGiven;
  if (given && (spec.mean.empty() || spec.deviation.empty()))
    return refused("normalization = given needs mean and deviation, such as 0.485,0.456,0.406 and 0.229,0.224,0.225");
  if (!given && !(spec.mean.empty() && spec.deviation.empty()))
    return refused("mean and deviation need normalization = given");
  if (spec.crop_padding > 0 && spec.crop && *spec.crop != Crop::kWindow)
    return refused(std::string("crop-padding is for crop = window; crop is ") + to_word(*spec.crop));
  return {};
}

}  // namespace tg::schema

#include "engine/data/data_summary.h"

#include <algorithm>
#include <cctype>

#include "engine/data/class_weights.h"
#include "engine/data/text_of.h"

namespace tg::engine {
namespace {

constexpr std::size_t kMaxNamed = 3;
constexpr std::uint64_t kTenths = 10;

// "class b has", "classes a, b, c and 4 more have"
std::string classes_have(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "class " : "classes ";
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamed) text += " and " + grouped(names.size() - kMaxNamed) + " more";
  return text + (names.size() == 1 ? " has" : " have");
}

// The name of a folder that was to be train/ or test/.
bool is_part(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* part : {"train", "training", "test", "testing", "val", "valid", "validation"})
    if (lower == part) return true;
  return false;
}

// A class without samples, and classes of very different sizes.
void look_at_classes(const Dataset& data, bool weighted, std::vector<std::string>& warnings) {
  const std::vector<std::size_t> train = samples_by_class(data.train, data.classes.size()),
                                 test = samples_by_class(data.test, data.classes.size());
  std::vector<std::string> untrained, untested;
  for (std::size_t c = 0; c < train.size(); ++c) {
    if (train[c] == 0) untrained.push_back(data.classes[c]);
    if (train[c] != 0 && test[c] == 0) untested.push_back(data.classes[c]);
  }
  if (train.size() > 1 && train[0] == 0 && untrained.size() == 1 && data.kind != DatasetKind::kFolder)
    warnings.push_back(
        "no sample has label 0, so the network has an output that nothing trains: labels count from 0; "
        "subtract 1 from each");
  else if (!untrained.empty())
    warnings.push_back(classes_have(untrained) + " no training samples, and the network has an output for each of " +
                       grouped(train.size()) + " classes" +
                       (data.kind == DatasetKind::kFolder ? "" : ": labels count from 0 without gaps; renumber them"));
  if (train.size() == 1)
    warnings.push_back("there is one class only, " + data.classes[0] +
                       ": nothing can be learned; is data-dir the right folder?");
  if (data.kind == DatasetKind::kFolder && std::ranges::any_of(data.classes, is_part))
    warnings.push_back("a class is called like a part of a data set (" + *std::ranges::find_if(data.classes, is_part) +
                       "): the parts are found as train/ and test/, in lower case, with a folder per class in each");
  if (!untested.empty())
    warnings.push_back(classes_have(untested) +
                       " no test samples: the accuracy says nothing of it; hold some back for testing");
  std::size_t least = 0, most = 0;
  for (std::size_t c = 0; c < train.size(); ++c) {
    if (train[least] == 0 || (train[c] != 0 && train[c] < train[least])) least = c;
    if (train[c] > train[most]) most = c;
  }
  if (!weighted && !train.empty() && train[most] >= kUnequalClasses * std::max<std::size_t>(train[least], 1))
    warnings.push_back("classes are of very unequal size: " + data.classes[most] + " has " + grouped(train[most]) +
                       " training samples, " + data.classes[least] + " has " + grouped(train[least]) +
                       "; class-weights = balanced makes them count alike");
}

// "61 steps an epoch", "2.5 steps an epoch"
std::string epoch_text(std::uint64_t samples, std::uint64_t batch) {
  const std::uint64_t tenths = samples * kTenths / batch;
  if (samples < batch) return "less than a step an epoch";
  std::string steps = grouped(tenths / kTenths);
  if (tenths < kTenths * kTenths && tenths % kTenths != 0) steps += "." + std::to_string(tenths % kTenths);
  return steps + (tenths == kTenths ? " step" : " steps") + " an epoch";
}

std::string left_out_text(const LeftOutFiles& left_out) {
  return grouped(left_out.count) + (left_out.count == 1 ? " file" : " files") + " left out (" + left_out.first +
         (left_out.count == 1 ? "" : ", ...") + ": not a JPEG or PNG)";
}

}  // namespace

DataSummary summarize_data(const Dataset& data, const Recipe& recipe, std::uint64_t global_batch, const Asked& asked) {
  const bool pictures = data.train.values.empty();
  const std::uint64_t train = data.train.count();
  DataSummary read;
  std::vector<std::string>& warnings = read.warnings;
  const std::string shape = shape_text(data.train.stored), input = shape_text(recipe.input);
  read.summary = grouped(data.classes.size()) + (data.classes.size() == 1 ? " class, " : " classes, ") +
                 grouped(train) + " + " + grouped(data.test.count()) + (pictures ? " pictures of " : " samples of ") +
                 shape + (shape == input ? "" : " as " + input) + ", " + epoch_text(train, global_batch);
  if (recipe.flip == Flip::kHorizontal) read.summary += ", flip horizontal";
  if (data.left_out.count != 0) {
    read.summary += ", " + left_out_text(data.left_out);
    warnings.push_back(left_out_text(data.left_out) + "; convert those that you want to train on");
  }
  if (const std::size_t damaged = data.skipped->count(); damaged != 0) {
    read.summary += ", " + grouped(damaged) + " damaged skipped";
    warnings.push_back(grouped(damaged) + (damaged == 1 ? " damaged file was" : " damaged files were") +
                       " skipped; the log names the first");
  }
  look_at_classes(data, asked.class_weights, warnings);
  if (recipe.flip == Flip::kHorizontal && !asked.flip && data.kind == DatasetKind::kFolder)
    warnings.push_back(
        "training flips half of the pictures left to right; letters, digits and signs do not survive "
        "that: flip = none leaves it out, flip = horizontal says that it is meant");
  if (global_batch > train)
    warnings.push_back("the global batch of " + grouped(global_batch) + " is larger than the training set of " +
                       grouped(train) + ": a step sees samples more than once; lower global-batch");
  return read;
}

}  // namespace tg::engine

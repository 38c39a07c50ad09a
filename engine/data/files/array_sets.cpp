#include "engine/data/files/array_sets.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/files/array.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/hold_out.h"
#include "engine/data/limits.h"
#include "engine/data/text_of.h"

namespace tg::engine {
namespace {

struct PartFiles {
  std::string samples, labels;  // paths
};

Error invalid(std::string message) { return {ErrorKind::kInvalidJob, std::move(message)}; }

std::vector<std::string> npy_names(const std::string& part, bool labels) {
  std::vector<std::string> names;
  const std::vector<std::string> letters =
      labels ? std::vector<std::string>{"y", "Y"} : std::vector<std::string>{"x", "X"};
  const std::vector<std::string> words =
      labels ? std::vector<std::string>{"labels"} : std::vector<std::string>{"images", "features"};
  for (const std::string& letter : letters) {
    if (part.empty()) {
      names.push_back(letter + ".npy");
      continue;
    }
    for (const char* between : {"_", "-"}) {
      names.push_back(letter + between + part + ".npy");
      names.push_back(part + between + letter + ".npy");
    }
  }
  for (const std::string& word : words) {
    if (part.empty()) names.push_back(word + ".npy");
    if (part.empty()) continue;
    for (const char* between : {"_", "-"}) names.push_back(part + between + word + ".npy");
  }
  return names;
}

Result<std::string> find_npy(const std::string& directory, const std::string& part, bool labels) {
  return find_file(directory, "", npy_names(part, labels));
}

// The only file whose name contains the word, "" if there is none.
Result<std::string> find_idx(const std::string& directory, const std::string& part, bool labels) {
  const std::string word = (part.empty() ? "" : part + "-") + (labels ? "labels" : "images");
  std::string found;
  std::error_code code;
  for (std::filesystem::directory_iterator at(directory, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.find(word) == std::string::npos || name.starts_with('.')) continue;
    if (!found.empty())
      return invalid("data-dir " + directory + " has more than one file with " + word + " in its name, " +
                     std::min(found, name) + " and " + std::max(found, name) +
                     "; put the files of one set into a folder of their own");
    found = name;
  }
  return found.empty() ? found : directory + "/" + found;
}

// Nothing if the data have no such part; an error if they have only half of it.
Result<std::optional<PartFiles>> find_part(const DatasetOptions& options, const std::string& part) {
  const auto find = options.kind == DatasetKind::kNpy ? find_npy : find_idx;
  const auto samples = find(options.directory, part, false);
  if (!samples) return samples.error();
  const auto labels = find(options.directory, part, true);
  if (!labels) return labels.error();
  if (samples->empty() && labels->empty()) return std::optional<PartFiles>();
  if (samples->empty() || labels->empty())
    return invalid("data-dir " + options.directory + " has " + (samples->empty() ? *labels : *samples) + " but no " +
                   (samples->empty() ? "samples" : "labels") + " to it; tgctl help job says how both are called");
  return std::optional(PartFiles{*samples, *labels});
}

// Maps the sizes of a sample to (C, H, W).
struct Layout {
  ImageShape shape;
  bool channels_last = false;
};

Layout layout_of(const std::vector<std::uint64_t>& sizes) {
  const auto size = [&](std::size_t i) { return static_cast<int>(sizes[i]); };  // below kMaxSampleElements
  if (sizes.size() == 1) return {{1, 1, 1}, false};
  if (sizes.size() == 2) return {{size(1), 1, 1}, false};
  if (sizes.size() == 3) return {{1, size(1), size(2)}, false};
  const auto colours = [](std::uint64_t n) { return n == 1 || n == 3; };
  if (!colours(sizes[1]) && colours(sizes[3])) return {{size(3), size(1), size(2)}, true};
  return {{size(1), size(2), size(3)}, false};
}

// Reorders each sample from H, W, C to C, H, W.
template <class Value>
void channels_first(const ImageShape& shape, std::vector<Value>& values) {
  const std::size_t elements = shape.elements(), channels = static_cast<std::size_t>(shape.channels);
  if (channels == 1) return;
  const std::size_t plane = elements / channels;
  std::vector<Value> sample(elements);
  for (std::size_t first = 0; first < values.size(); first += elements) {
    for (std::size_t i = 0; i < elements; ++i) sample[i % channels * plane + i / channels] = values[first + i];
    std::ranges::copy(sample, values.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

ArrayFormat format_of(const DatasetOptions& options) {
  return options.kind == DatasetKind::kNpy ? ArrayFormat::kNpy : ArrayFormat::kIdx;
}

Result<std::vector<std::uint16_t>> labels_of(const DatasetOptions& options, const PartFiles& files, const Seen& seen) {
  Result<DataFile> file = DataFile::open(files.labels);
  if (!file) return file.error();
  return read_labels(format_of(options), reader_of(*file), seen, files.labels);
}

Result<ImageSet> read_part(const DatasetOptions& options, const PartFiles& files, ContentHash& hash, NamedSums& sums) {
  ContentHash content;  // one file's
  std::uint64_t size = 0;
  const Seen seen = [&](std::span<const std::uint8_t> bytes) {
    hash.add(bytes);
    content.add(bytes);
    size += bytes.size();
    options.advanced(0, 0);
  };
  const auto end_of = [&](const std::string& path) {
    sums.add(std::filesystem::path(path).filename(), std::exchange(content, {}).value(), std::exchange(size, 0));
  };
  Result<DataFile> sample_file = DataFile::open(files.samples);
  if (!sample_file) return sample_file.error();
  Result<SampleArray> samples = read_samples(format_of(options), reader_of(*sample_file), seen, files.samples);
  if (!samples) return samples.error();
  end_of(files.samples);
  Result<std::vector<std::uint16_t>> labels = labels_of(options, files, seen);
  if (!labels) return labels.error();
  end_of(files.labels);
  if (samples->shape[0] != labels->size()) {
    return Error{ErrorKind::kCorrupt, files.samples + " has " + std::to_string(samples->shape[0]) + " samples and " +
                                          files.labels + " has " + std::to_string(labels->size()) +
                                          " labels; take both files from the same source"};
  }
  const Layout layout = layout_of(samples->shape);
  ImageSet set;
  set.stored = layout.shape;
  set.pixels = std::move(samples->bytes);
  set.values = std::move(samples->floats);
  set.labels = *std::move(labels);
  if (layout.channels_last) {
    channels_first(set.stored, set.pixels);
    channels_first(set.stored, set.values);
  }
  return set;
}

// Moves the held-back samples from `from` to `to`; both keep their order.
template <class Value>
void move_held(const std::vector<char>& held, std::size_t elements, std::vector<Value>& from, std::vector<Value>& to) {
  if (from.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto sample = std::span(from).subspan(i * elements, elements);
    if (held[i] != 0) {
      to.insert(to.end(), sample.begin(), sample.end());
    } else {
      std::copy(sample.begin(), sample.end(), from.begin() + static_cast<std::ptrdiff_t>(kept++ * elements));
    }
  }
  from.resize(kept * elements);
}

std::size_t most_label(const std::vector<std::uint16_t>& labels) {
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end());
}

Result<std::vector<std::string>> class_names(const DatasetOptions& options, std::size_t classes) {
  return read_class_names(find_file(options.directory, "", {"classes.txt"}), classes);
}

struct Parts {
  PartFiles train;
  std::optional<PartFiles> test;  // none: a share of train is held back
};

Result<Parts> find_parts(const DatasetOptions& options) {
  const bool npy = options.kind == DatasetKind::kNpy;
  const std::string files = npy ? "x_train.npy, y_train.npy and the rest" : "the IDX files";
  if (const Status status = check_directory(options.directory, options.kind, files); !status) return status.error();
  auto train_files = find_part(options, "train");
  if (!train_files) return train_files.error();
  Result<std::optional<PartFiles>> test_files = std::optional<PartFiles>();
  if (*train_files) {
    for (const char* part : {npy ? "test" : "t10k", npy ? "val" : "test"}) {
      if (*test_files) break;
      test_files = find_part(options, part);
      if (!test_files) return test_files.error();
    }
  } else {
    train_files = find_part(options, "");
    if (!train_files) return train_files.error();
    if (!*train_files)
      return invalid("data-dir " + options.directory + " has no " +
                     (npy ? "x_train.npy and y_train.npy, nor x.npy and y.npy"
                          : "file with train-images and none with train-labels in its name") +
                     "; put them there");
  }
  if (!*test_files && options.test_share == 0)
    return invalid("data-dir " + options.directory + " has no test set; set test-share = 0.1, say, or put " +
                   (npy ? "x_test.npy and y_test.npy" : "t10k-images and t10k-labels") + " there");
  if (*test_files && options.test_share != 0)
    return invalid("test-share is set, and data-dir " + options.directory + " has a test set (" +
                   (*test_files)->samples + "); leave out one of them");
  return Parts{**train_files, *test_files};
}

}  // namespace

Result<Dataset> load_arrays(const DatasetOptions& options) {
  const Result<Parts> parts = find_parts(options);
  if (!parts) return parts.error();
  const bool held = !parts->test;
  Dataset data;
  data.kind = options.kind;
  ContentHash hash;
  NamedSums sums;
  auto train = read_part(options, parts->train, hash, sums);
  if (!train) return train.error();
  data.train = *std::move(train);
  if (!held) {
    auto test = read_part(options, *parts->test, hash, sums);
    if (!test) return test.error();
    data.test = *std::move(test);
    if (data.train.stored != data.test.stored || data.train.values.empty() != data.test.values.empty())
      return Error{ErrorKind::kCorrupt, parts->train.samples + " has samples of " + shape_text(data.train.stored) +
                                            " and " + parts->test->samples + " of " + shape_text(data.test.stored) +
                                            ", or of another type; take both files from the same source"};
  }
  const std::size_t classes = std::max(most_label(data.train.labels), most_label(data.test.labels)) + 1;
  auto names = class_names(options, classes);
  if (!names) return names.error();
  data.classes = *std::move(names);
  if (held) {
    const std::vector<char> chosen = hold_out(data.train.labels, classes, options.test_share, options.seed);
    if (std::ranges::count(chosen, 1) == 0)
      return invalid("test-share leaves no sample for testing: " + parts->train.samples + " has " +
                     std::to_string(data.train.count()));
    data.test.stored = data.train.stored;
    const std::size_t elements = data.train.stored.elements();
    move_held(chosen, elements, data.train.pixels, data.test.pixels);
    move_held(chosen, elements, data.train.values, data.test.values);
    move_held(chosen, 1, data.train.labels, data.test.labels);
    hash.add(options.seed);
    hash.add(data.test.count());
  }
  for (const std::string& name : data.classes) hash.add(name);
  data.hash = hash.value();
  data.files = sums.sums();
  data.file_names = sums.names();
  return data;
}

}  // namespace tg::engine

#include "engine/data/folder/folder.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/folder/list.h"
#include "engine/data/limits.h"
#include "engine/data/parallel.h"
#include "engine/data/pictures/decode.h"

namespace tg::engine {
namespace {

// What loading a file yields.
struct Facts {
  std::uint64_t hash = 0;
  PictureSize size;              // zeros if damaged
  std::optional<Error> problem;  // why it is damaged
};

Facts examine(const std::string& path) {
  Facts facts;
  std::vector<std::uint8_t> bytes;
  if (const Status read = read_file(path, kMostPictureFileBytes, bytes); !read) {
    facts.problem = read.error();
    return facts;
  }
  ContentHash hash;
  hash.add(bytes);
  facts.hash = hash.value();
  const auto size = read_picture_size(bytes, path);
  if (size)
    facts.size = *size;
  else
    facts.problem = size.error();
  return facts;
}

class FolderSource final : public PictureSource {
 public:
  FolderSource(std::string directory, std::vector<std::string> files, const ImageShape& stored)
      : directory_(std::move(directory)), files_(std::move(files)), stored_(stored) {}

  Status read(std::size_t index, const Shrink& shrink, Picture& picture) const override {
    const std::string path = directory_ + "/" + files_[index];
    std::vector<std::uint8_t> bytes;
    if (const Status file = read_file(path, kMostPictureFileBytes, bytes); !file) return file;
    bool changed = false;
    const Shrink watched = [&](int height, int width) {
      changed = stored_.height != 0 && (height != stored_.height || width != stored_.width);
      return changed ? 8 : shrink(height, width);
    };
    const Status decoded = decode_picture(bytes, watched, path, picture);
    if (!changed) return decoded;
    return Error{ErrorKind::kFailed, path +
                                         " has changed since the run was prepared: its size is another; leave the "
                                         "data alone while a run is on"};
  }

 private:
  const std::string directory_;
  const std::vector<std::string> files_;
  const ImageShape stored_;  // height = 0 if sizes differ
};

// Removes damaged files; false if none are left.
bool keep_good(const std::vector<Facts>& facts, FolderPart& part, std::vector<PictureSize>& sizes) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].size.height == 0) continue;
    sizes.push_back(facts[i].size);
    if (kept != i) part.files[kept] = std::move(part.files[i]);
    part.labels[kept++] = part.labels[i];
  }
  part.files.resize(kept);
  part.labels.resize(kept);
  return kept != 0;
}

void add_text(const std::string& text, ContentHash& hash) {
  hash.add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace

Result<Dataset> load_folder(const DatasetOptions& options) {
  if (const Status status = check_directory(options.directory, options.kind, "a folder of pictures per class"); !status)
    return status.error();
  auto list = list_folder(options.directory, options.test_share, options.seed);
  if (!list) return list.error();
  Dataset data;
  data.kind = options.kind;
  data.damaged = options.damaged;
  data.classes = std::move(list->classes);
  ContentHash hash;
  for (const std::string& name : data.classes) add_text(name, hash);
  std::vector<PictureSize> sizes;
  for (FolderPart* part : {&list->train, &list->test}) {
    std::vector<Facts> facts(part->files.size());
    for_each_index(facts.size(), options.threads,
                   [&](std::size_t i) { facts[i] = examine(options.directory + "/" + part->files[i]); });
    hash.add(facts.size());
    for (std::size_t i = 0; i < facts.size(); ++i) {
      add_text(part->files[i], hash);
      hash.add(part->labels[i]);
      hash.add(facts[i].hash);
      if (!facts[i].problem) continue;
      if (options.damaged == Damaged::kFatal || facts[i].problem->kind != ErrorKind::kCorrupt) return *facts[i].problem;
      data.skipped->add(facts[i].problem->message);
    }
    if (!keep_good(facts, *part, sizes))
      return Error{ErrorKind::kCorrupt, "all pictures for " +
                                            std::string(part == &list->train ? "training" : "testing") +
                                            " are damaged: " + facts.front().problem->message};
  }
  const bool one_size = std::ranges::all_of(sizes, [&](const PictureSize& size) {
    return size.height == sizes.front().height && size.width == sizes.front().width;
  });
  const bool grey = std::ranges::all_of(sizes, [](const PictureSize& size) { return size.channels == 1; });
  ImageShape stored{grey ? 1 : 3, 0, 0};
  if (one_size) stored = {stored.channels, sizes.front().height, sizes.front().width};
  data.train.stored = data.test.stored = stored;
  data.train.labels = std::move(list->train.labels);
  data.test.labels = std::move(list->test.labels);
  data.train.source = std::make_shared<FolderSource>(options.directory, std::move(list->train.files), stored);
  data.test.source = std::make_shared<FolderSource>(options.directory, std::move(list->test.files), stored);
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine

#include "engine/data/folder/folder.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/folder/examine.h"
#include "engine/data/folder/list.h"
#include "engine/data/limits.h"
#include "engine/data/pictures/decode.h"
#include "engine/data/text_of.h"

namespace tg::engine {
namespace {

// In the hash after what is left out: members that find other files damaged would train on other samples.
constexpr std::uint64_t kDamagedMark = 0x64616d61676564;
constexpr std::size_t kMaxOthersNamed = 3;

class FolderSource final : public PictureSource {
 public:
  FolderSource(std::string directory, std::vector<std::string> files, const ImageShape& stored)
      : directory_(std::move(directory)), files_(std::move(files)), stored_(stored) {}

  const std::vector<std::string>& files() const { return files_; }
  Status read(std::size_t index, const Shrink& shrink, Picture& picture) const override {
    const std::string path = directory_ + "/" + files_[index];
    std::vector<std::uint8_t> bytes;
    if (const Status file = read_file(path, kMaxPictureFileBytes, bytes); !file) return file;
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

// Removes damaged files; false if none are left. facts: of the part's files.
bool keep_good(std::span<const PictureFacts> facts, FolderPart& part, std::vector<PictureSize>& sizes) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].problem) continue;
    sizes.push_back(facts[i].size);
    if (kept != i) part.files[kept] = std::move(part.files[i]);
    part.labels[kept++] = part.labels[i];
  }
  part.files.resize(kept);
  part.labels.resize(kept);
  return kept != 0;
}

// The first problem, unless damaged files are skipped, and the other files that have one.
Status check_facts(const std::vector<std::string>& files, const std::vector<PictureFacts>& facts, Dataset& data) {
  std::optional<Error> first;
  std::string others;
  std::size_t count = 0;  // of others
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].problem) continue;
    if (data.damaged == Damaged::kSkip && facts[i].problem->kind == ErrorKind::kCorrupt) {
      data.skipped->add(facts[i].problem->message);
    } else if (!first) {
      first = facts[i].problem;
    } else if (++count <= kMaxOthersNamed) {
      others += (others.empty() ? "" : ", ") + files[i];
    }
  }
  if (!first) return {};
  if (count > 0)
    first->message +=
        "; " + std::to_string(count) + " more like it: " + others + (count > kMaxOthersNamed ? ", ..." : "");
  return *first;
}

Result<FolderList> find_files(const DatasetOptions& options) {
  if (const Status status = check_directory(options.directory, options.kind, "a folder of pictures per class"); !status)
    return status.error();
  return list_folder(options.directory, options.test_share, options.seed, [&] { options.advanced(0, 0); });
}

// What pictures of these sizes are as samples.
ImageShape shape_of(const std::vector<PictureSize>& sizes) {
  const bool one_size = std::ranges::all_of(sizes, [&](const PictureSize& size) {
    return size.height == sizes.front().height && size.width == sizes.front().width;
  });
  const bool grey = std::ranges::all_of(sizes, [](const PictureSize& size) { return size.channels == 1; });
  ImageShape stored{grey ? 1 : 3, 0, 0};
  if (one_size) stored = {stored.channels, sizes.front().height, sizes.front().width};
  return stored;
}

}  // namespace

Result<Dataset> load_folder(const DatasetOptions& options) {
  Result<FolderList> list = find_files(options);
  if (!list) return list.error();
  Dataset data;
  data.kind = options.kind;
  data.damaged = options.damaged;
  data.classes = std::move(list->classes);
  data.left_out = std::move(list->left_out);
  ContentHash hash;
  for (const std::string& name : data.classes) hash.add(name);
  std::vector<std::string> files = list->train.files;
  files.insert(files.end(), list->test.files.begin(), list->test.files.end());
  const std::vector<PictureFacts> facts = examine_pictures(options, files);
  if (const Status good = check_facts(files, facts, data); !good) return good.error();
  std::vector<PictureSize> sizes;
  std::span<const PictureFacts> rest = facts;
  for (FolderPart* part : {&list->train, &list->test}) {
    const auto of_part = rest.first(part->files.size());
    rest = rest.subspan(of_part.size());
    hash.add(of_part.size());
    for (std::size_t i = 0; i < of_part.size(); ++i) {
      hash.add(part->files[i]);
      hash.add(part->labels[i]);
      hash.add(of_part[i].hash);
      if (of_part[i].problem) hash.add(kDamagedMark);
      ContentHash sample;
      sample.add(of_part[i].hash);
      sample.add(part->labels[i]);
      data.files.add(part->files[i], sample.value(), of_part[i].bytes);
    }
    if (!keep_good(of_part, *part, sizes))
      return Error{ErrorKind::kCorrupt, "all pictures for " +
                                            std::string(part == &list->train ? "training" : "testing") +
                                            " are damaged: " + of_part.front().problem->message};
  }
  const ImageShape stored = shape_of(sizes);
  data.train.stored = data.test.stored = stored;
  data.train.labels = std::move(list->train.labels);
  data.test.labels = std::move(list->test.labels);
  const auto train = std::make_shared<const FolderSource>(options.directory, std::move(list->train.files), stored);
  const auto test = std::make_shared<const FolderSource>(options.directory, std::move(list->test.files), stored);
  data.train.source = train;
  data.test.source = test;
  data.file_names = [train, test](const std::function<void(const std::string&)>& take) {
    for (const auto& source : {train, test}) std::ranges::for_each(source->files(), take);
  };
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine

#include "engine/data/folder/list.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"
#include "engine/data/hold_out.h"
#include "engine/data/limits.h"

namespace tg::engine {
namespace {

namespace fs = std::filesystem;

Error invalid(std::string message) { return {ErrorKind::kInvalidJob, std::move(message)}; }

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 9 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_picture(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || name.starts_with('.')) return false;
  std::string ending = name.substr(dot + 1);
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == "jpg" || ending == "jpeg" || ending == "png";
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

struct PictureFile {
  std::string name, class_name;
};
// One part of the set.
struct Files {
  std::vector<PictureFile> pictures;
  LeftOutFiles left_out;
};
using Advance = std::function<void()>;

Error unlisted(const std::string& path, const std::error_code& code) {
  return invalid("cannot list " + path + ": " + code.message() + "; check its permissions");
}

// Adds the pictures of directory/class and of the folders in it.
Status add_class(const std::string& directory, const std::string& prefix, const std::string& name,
                 const Advance& advance, Files& files) {
  const std::string path = directory + "/" + prefix + name;
  std::error_code code;
  fs::recursive_directory_iterator at(path, code), end;
  for (; !code && at != end; at.increment(code)) {
    advance();
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    if (at.depth() > kMaxFolderDepth)
      return invalid(at->path().string() + " is more than " + std::to_string(kMaxFolderDepth) +
                     " folders below its class; move it further up");
    std::error_code ignored;
    if (at->is_directory(ignored)) continue;
    std::string file = prefix + name + at->path().string().substr(path.size());
    if (!is_picture(at->path().filename().string())) {
      std::string& first = files.left_out.first;
      if (files.left_out.count++ == 0 || file < first) first = std::move(file);
      continue;
    }
    files.pictures.push_back({std::move(file), name});
    if (files.pictures.size() > kMaxSamples)
      return invalid(directory + " holds more than " + std::to_string(kMaxSamples) + " pictures");
  }
  if (code) return unlisted(path, code);
  return {};
}

// The names of a folder's folders.
Result<std::vector<std::string>> folders_of(const std::string& path, const Advance& advance) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(path, code), end; !code && at != end; at.increment(code)) {
    advance();
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (!name.starts_with('.') && at->is_directory(ignored)) names.push_back(name);
  }
  if (code) return unlisted(path, code);
  std::ranges::sort(names);
  return names;
}

// Lists files with a folder per class; prefix: "" or "train/".
Result<Files> files_by_class(const std::string& directory, const std::string& prefix, const Advance& advance) {
  const auto classes = folders_of(directory + "/" + prefix, advance);
  if (!classes) return classes.error();
  Files files;
  for (const std::string& name : *classes) {
    const std::size_t before = files.pictures.size();
    if (const Status added = add_class(directory, prefix, name, advance, files); !added) return added.error();
    if (files.pictures.size() == before)
      return invalid(directory + "/" + prefix + name +
                     " counts as a class but holds no .jpg, .jpeg or .png; move it elsewhere, or set data-dir to the "
                     "folder that holds one per class");
  }
  std::ranges::sort(files.pictures, {}, &PictureFile::name);
  return files;
}

Result<Files> files_of_list(const std::string& path, const Advance& advance) {
  const auto lines = read_lines(path);
  if (!lines) return lines.error();
  Files files;
  for (std::size_t i = 0; i < lines->size(); ++i) {
    advance();
    const std::string& line = (*lines)[i];
    if (line.empty()) continue;
    ListedFile listed = parse_listed_file(line);
    const std::string place = path + ":" + std::to_string(i + 1) + ": ";
    const fs::path file(listed.file);
    if (file.is_absolute() || std::any_of(file.begin(), file.end(), [](const fs::path& step) { return step == ".."; }))
      return invalid(place + "files are named from the list's folder on, without / at the start and without ..");
    if (listed.class_name.empty())
      return invalid(place +
                     "no class: put the file into a folder of its class, or write a tab and its class behind it");
    files.pictures.push_back({std::move(listed.file), std::move(listed.class_name)});
    if (files.pictures.size() > kMaxSamples)
      return invalid(path + " lists more than " + std::to_string(kMaxSamples) + " pictures");
  }
  std::ranges::sort(files.pictures, {}, &PictureFile::name);
  return files;
}

struct Parts {
  Files train;
  std::optional<Files> test;
  std::string test_place;
};

Result<Parts> find_parts(const std::string& directory, const Advance& advance) {
  const bool listed = exists(directory + "/train.txt");
  const auto read = [&](const std::string& name) {
    return listed ? files_of_list(directory + "/" + name, advance) : files_by_class(directory, name, advance);
  };
  Parts parts;
  // A folder train/ that holds pictures and no folders is a class like the others: railways.
  const auto inside = folders_of(directory + "/train", advance);
  const std::string train = listed ? "train.txt" : inside && !inside->empty() ? "train/" : "";
  auto files = read(train);
  if (!files) return files.error();
  parts.train = *std::move(files);
  if (train.empty()) return parts;
  for (const char* name : {"test", "val"}) {
    const std::string place = std::string(name) + (listed ? ".txt" : "/");
    if (!exists(directory + "/" + place)) continue;
    auto test = read(place);
    if (!test) return test.error();
    if (test->pictures.empty()) continue;  // ImageNet's test/ has pictures without classes
    parts.test = *std::move(test);
    parts.test_place = directory + "/" + place;
    break;
  }
  return parts;
}

std::vector<std::string> classes_of(const Files& files) {
  std::vector<std::string> names;
  for (const PictureFile& file : files.pictures) names.push_back(file.class_name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (std::ranges::all_of(names, is_number))
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return std::stoul(name); });
  return names;
}

Result<FolderPart> labelled(Files files, const std::map<std::string, std::uint16_t>& labels, const std::string& place) {
  FolderPart part;
  for (PictureFile& file : files.pictures) {
    const auto found = labels.find(file.class_name);
    if (found == labels.end())
      return invalid(place + " has the class " + file.class_name + " (" + file.name +
                     "), and the training set has no class of that name: add its pictures there, or take it out here");
    part.labels.push_back(found->second);
    part.files.push_back(std::move(file.name));
  }
  return part;
}

// Moves the held-back samples; both parts keep their order.
void move_held(const std::vector<char>& held, FolderPart& from, FolderPart& to) {
  FolderPart kept;
  for (std::size_t i = 0; i < held.size(); ++i) {
    FolderPart& part = held[i] != 0 ? to : kept;
    part.files.push_back(std::move(from.files[i]));
    part.labels.push_back(from.labels[i]);
  }
  from = std::move(kept);
}

}  // namespace

ListedFile parse_listed_file(const std::string& line) {
  if (const std::size_t tab = line.rfind('\t'); tab != std::string::npos)
    return {line.substr(0, tab), line.substr(tab + 1)};
  if (const std::size_t space = line.rfind(' '); space != std::string::npos) {
    if (is_number(line.substr(space + 1)) && is_picture("x" + line.substr(0, space)))
      return {line.substr(0, space), line.substr(space + 1)};
  }
  return {line, fs::path(line).parent_path().filename().string()};
}

Result<std::optional<std::uint64_t>> hash_listing(const std::string& directory) {
  constexpr double kSomeShare = 0.5;  // any will do
  auto list = list_folder(directory, 0, 1);
  if (!list) {
    const Error problem = list.error();
    list = list_folder(directory, kSomeShare, 1);
    const bool meant = exists(directory + "/train") || exists(directory + "/train.txt");
    if (!list && !meant) return std::optional<std::uint64_t>();
    if (!list) return problem;
  }
  std::vector<std::string> names = std::move(list->train.files);
  std::ranges::move(list->test.files, std::back_inserter(names));
  std::ranges::sort(names);
  ContentHash hash;
  for (const std::string& name : names) hash.add(name);
  return std::optional(hash.value());
}

Result<FolderList> list_folder(const std::string& directory, double test_share, std::uint64_t seed,
                               const std::function<void()>& advance) {
  auto parts = find_parts(directory, advance);
  if (!parts) return parts.error();
  if (parts->train.pictures.empty())
    return invalid("data-dir " + directory +
                   " has no pictures for training: put .jpg, .jpeg or .png files into a folder "
                   "per class, directly or in train/");
  const bool only_test = !parts->test && !exists(directory + "/train") && exists(directory + "/test");
  if (only_test)
    return invalid("data-dir " + directory +
                   " has test/ but no train/: put the pictures for training there, a folder per class");
  if (parts->test && test_share != 0)
    return invalid("test-share is set, and there is a test set, " + parts->test_place + "; leave out one of them");
  if (!parts->test && test_share == 0)
    return invalid("data-dir " + directory +
                   " has no test set (test/, val/, test.txt; in lower case): set test-share = 0.1, "
                   "say, or add one");
  FolderList list;
  list.classes = classes_of(parts->train);
  if (list.classes.size() > kMaxClasses)
    return invalid("data-dir " + directory + " has " + std::to_string(list.classes.size()) + " classes; at most " +
                   std::to_string(kMaxClasses));
  std::map<std::string, std::uint16_t> labels;
  for (std::size_t c = 0; c < list.classes.size(); ++c) labels[list.classes[c]] = static_cast<std::uint16_t>(c);
  list.left_out = parts->train.left_out;
  if (parts->test) {
    list.left_out.count += parts->test->left_out.count;
    if (list.left_out.first.empty()) list.left_out.first = parts->test->left_out.first;
  }
  auto train = labelled(std::move(parts->train), labels, directory);
  if (!train) return train.error();
  list.train = *std::move(train);
  if (parts->test) {
    auto test = labelled(*std::move(parts->test), labels, parts->test_place);
    if (!test) return test.error();
    list.test = *std::move(test);
  } else {
    move_held(hold_out(list.train.labels, list.classes.size(), test_share, seed), list.train, list.test);
    if (list.test.files.empty())
      return invalid("test-share leaves no picture for testing: no class of " + directory + " has enough");
  }
  return list;
}

}  // namespace tg::engine

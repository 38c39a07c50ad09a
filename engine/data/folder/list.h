// Finds which files of a folder are samples, their classes, and whether they are for training or testing.
//
//   1. If train.txt exists, it has one file per line, relative to the folder, with / as separator. The class is the
//      file's folder, or the text after the line's last tab, or a number after a space that follows the file's
//      extension. test.txt or val.txt is the same for testing.
//   2. Else, if train/ exists, it has a folder per class, and so has test/, or val/ if there is no test/.
//   3. Else there is a folder per class.
// Without a test set, test_share of each class is held back (hold_out.h). Samples are files ending in .jpg, .jpeg or
// .png (in any case), in their class's folder and up to kMaxFolderDepth folders below it (deeper ones are an error);
// names that begin with a dot are left out. Classes are those of training, sorted by their names' bytes (numerically if
// all are numbers); files are sorted by their names' bytes. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset.h"
#include "kernels/base/status.h"

namespace tg::engine {

struct FolderPart {
  std::vector<std::string> files;  // relative to the folder
  std::vector<std::uint16_t> labels;
};
struct FolderList {
  std::vector<std::string> classes;
  FolderPart train, test;
  LeftOutFiles left_out;
};

// Lists a folder. Errors say what was found and what to do. advance: called for each name that is met; what it throws
// passes through.
Result<FolderList> list_folder(
    const std::string& directory, double test_share, std::uint64_t seed, const std::function<void()>& advance = [] {});

// A hash of the names of all pictures, whichever of them a job holds back for testing; nothing where the folder does
// not look as if it were meant to be one.
Result<std::optional<std::uint64_t>> hash_listing(const std::string& directory);

// Parses a line of a list into the file and its class. `line` is not empty. Pure.
struct ListedFile {
  std::string file, class_name;
};
ListedFile parse_listed_file(const std::string& line);

}  // namespace tg::engine

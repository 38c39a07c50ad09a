// Which files of a folder are samples, of which class, for training or for testing.
//
//   1. train.txt is there: a file a line, from the folder on, with / between. Its class is the folder that it lies in,
//   or
//      what follows the line's last tab, or, behind a picture's ending, a space and a number. test.txt or val.txt: the
//      same, for testing.
//   2. train/ is there: a folder per class in it, and the same in test/, or in val/ if there is no test/.
//   3. else a folder per class.
// Where there is no part for testing, test_share of each class is held back (hold_out.h). Samples are files ending in
// .jpg, .jpeg or .png (in any case), in their class's folder and up to kMostFolderDepth folders below it (what lies
// deeper is an error); names that begin with a dot are left out. Classes are those of training, in the order of their
// names' bytes (of their numbers where all are numbers); files are in the order of their names' bytes. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

struct FolderPart {
  std::vector<std::string> files;  // from the folder on
  std::vector<std::uint16_t> labels;
};
struct FolderList {
  std::vector<std::string> classes;
  FolderPart train, test;
};

// Errors say what was found and what to do.
Result<FolderList> list_folder(const std::string& directory, double test_share, std::uint64_t seed);

// A line of a list: the file, and its class. `line` is not empty. Pure.
struct ListedFile {
  std::string file, class_name;
};
ListedFile parse_listed_file(const std::string& line);

}  // namespace tg::engine

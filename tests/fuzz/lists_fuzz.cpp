// Any bytes as what a folder of data holds besides samples: train.txt, classes.txt; and as a gzip file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/data/files/file_bytes.h"
#include "engine/data/folder/list.h"
#include "engine/data/limits.h"
#include "tests/fuzz/memory_file.h"

namespace {

namespace fs = std::filesystem;
using namespace tg::engine;

// A folder of this process.
class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "tgd-fuzz-XXXXXX";
    TG_CHECK(::mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void check_list(const FolderList& list) {
  for (const FolderPart* part : {&list.train, &list.test}) {
    TG_CHECK(part->files.size() == part->labels.size(), part->files.size());
    for (const std::uint16_t label : part->labels) TG_CHECK(label < list.classes.size(), int{label});
    for (const std::string& file : part->files) {
      TG_CHECK(!fs::path(file).is_absolute(), file);
      for (const fs::path& step : fs::path(file)) TG_CHECK(step != "..", file);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::ofstream(folder.path() + "/train.txt", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (const auto list = list_folder(folder.path(), 0.5, 1)) check_list(*list);
  const tg::fuzz::MemoryFile file(data, size);
  if (const auto names = read_class_names(file.path(), 10))
    TG_CHECK(names->size() >= 10 && names->size() <= kMaxClasses);
  if (auto opened = DataFile::open(file.path())) {
    constexpr std::size_t kMost = 1 << 20;
    std::vector<std::uint8_t> bytes;
    const tg::Status read = opened->read_up_to(kMost, bytes);
    TG_CHECK(bytes.size() <= kMost, bytes.size());
    if (!read) TG_CHECK(read.error().message.find(file.path()) != std::string::npos, read.error().message);
  }
  return 0;
}

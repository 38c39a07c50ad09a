#include "engine/data/files/file_bytes.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace tg::engine {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

struct GzClose {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzHandle = std::unique_ptr<gzFile_s, GzClose>;

Error unreadable(const std::string& path, const std::string& cause) {
  return {ErrorKind::kIo, "cannot read " + path + ": " + cause + "; check the path and its permissions"};
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file_bytes(const std::string& path, std::size_t most_bytes) {
  errno = 0;
  const GzHandle file(gzopen(path.c_str(), "rb"));
  if (!file) return unreadable(path, errno != 0 ? std::strerror(errno) : "out of memory");
  gzbuffer(file.get(), 128 * 1024);
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t old = bytes.size();
    bytes.resize(old + kReadBytes);
    errno = 0;
    const int got = gzread(file.get(), bytes.data() + old, kReadBytes);
    int code = Z_OK;
    const char* text = gzerror(file.get(), &code);
    if (code == Z_ERRNO) return unreadable(path, std::strerror(errno));
    if (got < 0 || code != Z_OK) {
      const std::string cause = code == Z_BUF_ERROR ? "the gzip data ends too early" : text;
      return Error{ErrorKind::kCorrupt, path + " is damaged: " + cause + "; fetch the file again"};
    }
    bytes.resize(old + static_cast<std::size_t>(got));
    if (bytes.size() > most_bytes) {
      return Error{ErrorKind::kCorrupt, path + " holds more than " + std::to_string(most_bytes) +
                                            " bytes, so it is not the data file that its name says; fetch it again"};
    }
    if (got == 0) return bytes;
  }
}

std::string find_file(const std::string& directory, const std::string& subfolder,
                      const std::vector<std::string>& names) {
  const std::filesystem::path root(directory);
  for (const auto& folder : {root, root / subfolder}) {
    for (const std::string& name : names) {
      std::error_code ignored;
      if (std::filesystem::exists(folder / name, ignored)) return (folder / name).string();
    }
  }
  return "";
}

Status check_directory(const std::string& directory, DatasetKind dataset, const std::string& files) {
  const std::string action = "; set data-dir to the directory that holds " + files + ", or use data = synthetic";
  if (directory.empty())
    return Error{ErrorKind::kInvalidJob, std::string("data = ") + to_word(dataset) + " needs data-dir" + action};
  std::error_code code;
  const std::filesystem::directory_iterator entries(directory, code);
  if (code) {
    return Error{ErrorKind::kInvalidJob, "data-dir " + directory + " cannot be read: " + code.message() + action};
  }
  if (entries == std::filesystem::directory_iterator()) {
    return Error{ErrorKind::kInvalidJob, "data-dir " + directory + " is empty" + action};
  }
  return {};
}

}  // namespace tg::engine

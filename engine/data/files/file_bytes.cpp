#include "engine/data/files/file_bytes.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "engine/data/limits.h"
#include "kernels/base/regular_file.h"

namespace tg::engine {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

Error unreadable(const std::string& path, const std::string& cause) {
  return {ErrorKind::kIo, "cannot read " + path + ": " + cause + "; check the path and its permissions"};
}

}  // namespace

void DataFile::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

Result<RegularFile> open_data_file(const std::string& path) {
  Result<RegularFile> file = RegularFile::open(path);
  if (!file) return unreadable(path, file.error().message);
  return file;
}

Result<DataFile> DataFile::open(const std::string& path) {
  Result<RegularFile> opened = open_data_file(path);
  if (!opened) return opened.error();
  const int descriptor = opened->release();
  gzFile file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    ::close(descriptor);
    return unreadable(path, "out of memory");
  }
  gzbuffer(file, 128 * 1024);
  return DataFile(path, file);
}

Status DataFile::read_up_to(std::size_t size, std::vector<std::uint8_t>& bytes) {
  const auto file = static_cast<gzFile>(file_.get());
  bytes.reserve(size);  // memory is used only when written to
  while (bytes.size() < size) {
    const std::size_t old = bytes.size(), wanted = std::min(kReadBytes, size - old);
    bytes.resize(old + wanted);
    errno = 0;
    const int got = gzread(file, bytes.data() + old, static_cast<unsigned>(wanted));
    int code = Z_OK;
    const char* text = gzerror(file, &code);
    if (code == Z_ERRNO) return unreadable(path_, std::strerror(errno));
    if (got < 0 || code != Z_OK) {
      const std::string cause = code == Z_BUF_ERROR ? "the gzip data ends too early" : text;
      return Error{ErrorKind::kCorrupt, path_ + " is damaged: " + cause + "; fetch the file again"};
    }
    bytes.resize(old + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  return {};
}

Status read_file(const std::string& path, std::size_t most, std::vector<std::uint8_t>& bytes) {
  const Result<RegularFile> file = open_data_file(path);
  if (!file) return file.error();
  return read_file(*file, path, most, bytes);
}

Status read_file(const RegularFile& file, const std::string& path, std::size_t most, std::vector<std::uint8_t>& bytes) {
  if (file.bytes() > most)
    return Error{ErrorKind::kCorrupt, path + " has " + std::to_string(file.bytes()) + " bytes, more than the " +
                                          std::to_string(most) + " allowed"};
  bytes.resize(file.bytes());
  const Result<std::size_t> got = file.read(0, std::as_writable_bytes(std::span(bytes)));
  if (!got) return unreadable(path, got.error().message);
  bytes.resize(*got);
  return {};
}

Result<std::vector<std::string>> read_lines(const std::string& path) {
  std::vector<std::uint8_t> bytes;
  if (const Status read = read_file(path, kMaxListBytes, bytes); !read) return read.error();
  if (std::ranges::count(bytes, std::uint8_t{'\n'}) > static_cast<std::ptrdiff_t>(kMaxSamples))
    return Error{ErrorKind::kCorrupt, path + " has more than " + std::to_string(kMaxSamples) + " lines; remove some"};
  std::vector<std::string> lines;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto end = std::find(at, bytes.end(), std::uint8_t{'\n'});
    std::string line(at, end);
    if (line.ends_with('\r')) line.pop_back();
    if (line.find('\0') != std::string::npos)
      return Error{ErrorKind::kCorrupt,
                   path + " is not text: line " + std::to_string(lines.size() + 1) + " has a zero byte"};
    lines.push_back(std::move(line));
    at = end == bytes.end() ? end : end + 1;
  }
  return lines;
}

Result<std::vector<std::string>> read_class_names(const std::string& path, std::size_t classes) {
  std::vector<std::string> names;
  if (!path.empty()) {
    auto lines = read_lines(path);
    if (!lines) return lines.error();
    names = *std::move(lines);
    while (!names.empty() && names.back().empty()) names.pop_back();
    if (names.size() > kMaxClasses) {
      return Error{ErrorKind::kCorrupt, path + " names " + std::to_string(names.size()) + " classes; at most " +
                                            std::to_string(kMaxClasses)};
    }
  }
  for (std::size_t c = names.size(); c < classes; ++c) names.push_back(std::to_string(c));
  return names;
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

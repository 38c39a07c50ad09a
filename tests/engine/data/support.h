// What the data tests share: a folder that goes away, and small files in the formats that the readers know.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/dataset.h"
#include "engine/storage/safetensors.h"

namespace tg::engine::test {

using Bytes = std::vector<std::uint8_t>;

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tgd-data-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_plain(const std::string& path, const Bytes& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline Bytes read_plain(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_gzip(const std::string& path, const Bytes& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

// A tensor of these values, which outlive it.
inline TensorSource tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                           const std::vector<float>& values) {
  return {name, shape, [&values](std::size_t first, std::span<float> out) -> Status {
            EXPECT_LE(first + out.size(), values.size());
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
            return {};
          }};
}

// Sample i has pixels of a pattern of i and label i mod 10.
inline std::uint8_t pattern(std::size_t i, std::size_t at) {
  return static_cast<std::uint8_t>(31 * i + 7 * at + i * at);
}

inline Bytes idx_images(std::size_t count, std::uint8_t side, std::size_t salt = 0) {
  Bytes bytes = {0, 0,    8, 3, 0, 0,   static_cast<std::uint8_t>(count >> 8), static_cast<std::uint8_t>(count), 0, 0,
                 0, side, 0, 0, 0, side};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t at = 0; at < std::size_t{side} * side; ++at) bytes.push_back(pattern(i + salt, at));
  }
  return bytes;
}

inline Bytes idx_labels(std::size_t count) {
  Bytes bytes = {0, 0, 8, 1, 0, 0, static_cast<std::uint8_t>(count >> 8), static_cast<std::uint8_t>(count)};
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 10));
  return bytes;
}

inline Bytes cifar_records(std::size_t count, std::size_t salt) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::uint8_t>((i + salt) % 10));
    for (std::size_t at = 0; at < 3072; ++at) bytes.push_back(pattern(i + salt, at));
  }
  return bytes;
}

// The most memory that this process has had since it was asked before, in KiB.
inline long peak_kib() {
  std::ifstream status("/proc/self/status");
  long peak = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) peak = std::stol(line.substr(6));
  std::ofstream("/proc/self/clear_refs") << "5";
  return peak;
}

inline Result<std::shared_ptr<const Dataset>> load(DatasetKind kind, const std::string& directory) {
  DatasetOptions options;
  options.kind = kind;
  options.directory = directory;
  return load_dataset(options);
}

// The error of a load, which must fail; every error names what it is about and ends in something to do.
inline std::string error_of(DatasetKind kind, const std::string& directory) {
  const auto data = load(kind, directory);
  return data.ok() ? "no error" : data.error().message;
}

inline void expect_text(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" does not say \"" << part << "\"";
}

}  // namespace tg::engine::test

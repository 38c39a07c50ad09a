// The files of a data set, in so few bytes that they travel with a vote, and still tell which files differ. The names
// put the files into kGroups groups. Of each group there are two sums, modulo 2^64, over its files:
//
//   a = sum h, b = sum h n      n = hash of the name, h = hash of name and content, both odd
//   text := FILES ' ' BYTES ' ' TRAIN ' ' TEST ' ' (a b){kGroups}      decimal; a and b as 16 hexadecimal digits each
//
// Where one file of a group is missing, added or another one, b' - b = (a' - a) n: a node that has the file finds
// it among its own names. Where several of a group differ, nothing is found, which is said. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tg::engine {

// Calls it with each name of a set's files.
using EachName = std::function<void(const std::function<void(const std::string&)>& take)>;

class FileSums {
 public:
  static constexpr std::size_t kGroups = 32;
  static constexpr std::size_t kMaxTextBytes = 4 * 21 + kGroups * 32;

  void add(const std::string& name, std::uint64_t content, std::uint64_t bytes);
  void set_samples(std::uint64_t train, std::uint64_t test) { train_ = train, test_ = test; }
  bool empty() const { return files_ == 0; }

  std::string text() const;
  static std::optional<FileSums> parse(std::string_view text);  // the inverse of text(), for text from any source

  // "4680 files of 1234567 bytes, 3900 + 780 samples"
  std::string counts() const;
  // In words: the first of the names that they have differently, and how many more. "" if none was found.
  static std::string difference(const FileSums& one, const FileSums& other, const EachName& names);

 private:
  struct Group {
    std::uint64_t a = 0, b = 0;
    bool operator==(const Group&) const = default;
  };
  std::uint64_t files_ = 0, bytes_ = 0, train_ = 0, test_ = 0;
  std::array<Group, kGroups> groups_{};
};

// The sums of a few files, with their names.
class NamedSums {
 public:
  void add(const std::string& name, std::uint64_t content, std::uint64_t bytes);
  void add(const std::string& name, std::span<const std::uint8_t> bytes);
  const FileSums& sums() const { return sums_; }
  EachName names() const;

 private:
  FileSums sums_;
  std::vector<std::string> names_;
};

}  // namespace tg::engine

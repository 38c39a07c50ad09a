#include "engine/data/file_sums.h"

#include <algorithm>
#include <charconv>

#include "engine/data/content_hash.h"
#include "kernels/base/hex.h"

namespace tg::engine {
namespace {

constexpr std::size_t kDigits = 16;  // per sum

std::uint64_t hash_of_name(const std::string& name) { return ContentHash::of(name) | 1; }

std::size_t group_of(std::uint64_t name_hash) { return (name_hash >> 32) % FileSums::kGroups; }

}  // namespace

void FileSums::add(const std::string& name, std::uint64_t content, std::uint64_t bytes) {
  const std::uint64_t n = hash_of_name(name);
  ContentHash hash;
  hash.add(n);
  hash.add(content);
  const std::uint64_t h = hash.value() | 1;
  Group& group = groups_[group_of(n)];
  group.a += h;
  group.b += h * n;
  ++files_;
  bytes_ += bytes;
}

std::string FileSums::text() const {
  std::string text;
  for (const std::uint64_t number : {files_, bytes_, train_, test_}) text += std::to_string(number) + " ";
  for (const Group& group : groups_) text += hex_digest(group.a) + hex_digest(group.b);
  return text;
}

std::optional<FileSums> FileSums::parse(std::string_view text) {
  FileSums sums;
  for (std::uint64_t* number : {&sums.files_, &sums.bytes_, &sums.train_, &sums.test_}) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (code != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (text.size() != kGroups * 2 * kDigits) return std::nullopt;
  for (Group& group : sums.groups_) {
    for (std::uint64_t* sum : {&group.a, &group.b}) {
      const auto value = parse_hex_digest(text.substr(0, kDigits));
      if (!value) return std::nullopt;
      *sum = *value;
      text.remove_prefix(kDigits);
    }
  }
  return sums;
}

std::string FileSums::counts() const {
  return std::to_string(files_) + (files_ == 1 ? " file of " : " files of ") + std::to_string(bytes_) + " bytes, " +
         std::to_string(train_) + " + " + std::to_string(test_) + " samples";
}

std::string FileSums::difference(const FileSums& one, const FileSums& other, const EachName& names) {
  std::array<std::string, kGroups> found;
  names([&](const std::string& name) {
    const std::uint64_t n = hash_of_name(name);
    const std::size_t group = group_of(n);
    const Group &ours = one.groups_[group], &theirs = other.groups_[group];
    if (ours != theirs && theirs.b - ours.b == (theirs.a - ours.a) * n) found[group] = name;
  });
  const auto differing = static_cast<std::size_t>(std::ranges::count_if(
      one.groups_, [&, g = std::size_t{0}](const Group& group) mutable { return group != other.groups_[g++]; }));
  std::string first;
  for (const std::string& name : found)
    if (!name.empty() && (first.empty() || name < first)) first = name;
  if (differing == 0) return "";
  const std::string least =
      "at least " + std::to_string(differing) + (differing == 1 ? " file differs" : " files differ");
  return first.empty() ? least : first + " differs" + (differing > 1 ? " (" + least + ")" : "");
}

void NamedSums::add(const std::string& name, std::uint64_t content, std::uint64_t bytes) {
  sums_.add(name, content, bytes);
  names_.push_back(name);
}

void NamedSums::add(const std::string& name, std::span<const std::uint8_t> bytes) {
  add(name, ContentHash::of(bytes), bytes.size());
}

EachName NamedSums::names() const {
  return [names = names_](const std::function<void(const std::string&)>& take) { std::ranges::for_each(names, take); };
}

}  // namespace tg::engine

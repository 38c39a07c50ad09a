#include "engine/resources/cgroup.h"

#include <algorithm>
#include <charconv>

namespace tg::engine {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view next_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(start);
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::optional<long long> positive_number(std::string_view word) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value <= 0) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> bytes_in(std::string_view word) {
  if (word == "0") return 0;
  if (const auto number = positive_number(word)) return static_cast<std::uint64_t>(*number);
  return std::nullopt;
}

// The number after `name`, the first word of its line.
std::optional<std::uint64_t> number_of_line(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (next_word(line) != name) continue;
    return bytes_in(next_word(line));
  }
  return std::nullopt;
}

// Is `word` one of those between commas?
bool listed(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view one = words.substr(0, words.find(','));
    if (one == word) return true;
    words.remove_prefix(std::min(one.size() + 1, words.size()));
  }
  return false;
}

// The path in a line ID:CONTROLLERS:PATH, or 0::PATH in version 2. "" if there is no such line.
std::string group_of(std::string_view self, std::string_view controller) {
  while (!self.empty()) {
    const std::string_view line = next_line(self);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? line.starts_with("0::") : listed(controllers, controller))
      return std::string(line.substr(second + 1));
  }
  return "";
}

struct Mount {
  std::string root, point;  // the mounted group, and the mount point
};

// Lines are ID PARENT DEVICE ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER-OPTIONS.
std::optional<Mount> mount_of(std::string_view mounts, std::string_view controller) {
  while (!mounts.empty()) {
    std::string_view line = next_line(mounts);
    const std::size_t separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    std::string_view tail = line.substr(separator + 3);
    const std::string_view type = next_word(tail);
    next_word(tail);
    if (controller.empty() ? type != "cgroup2" : type != "cgroup" || !listed(next_word(tail), controller)) continue;
    for (int i = 0; i < 3; ++i) next_word(line);
    const std::string_view root = next_word(line);
    return Mount{std::string(root), std::string(next_word(line))};
  }
  return std::nullopt;
}

// Rounded down: with one thread more than the quota pays for, the group is throttled and all its threads wait.
std::optional<int> whole_processors(std::string_view quota, std::string_view period) {
  const auto quota_us = positive_number(quota);
  const auto period_us = positive_number(period);
  if (!quota_us || !period_us) return std::nullopt;
  return static_cast<int>(std::clamp<long long>(*quota_us / *period_us, 1, 1 << 20));
}

}  // namespace

std::optional<int> processors_in_cpu_max(std::string_view content) {
  const std::string_view quota = next_word(content);
  const std::string_view period = next_word(content);
  return whole_processors(quota, period);
}

std::optional<int> processors_in_cfs(std::string_view quota, std::string_view period) {
  return whole_processors(next_word(quota), next_word(period));
}

std::optional<std::uint64_t> memory_left_in_group(std::string_view most, std::string_view current,
                                                  std::string_view stat) {
  const auto limit = bytes_in(next_word(most));
  const auto used = bytes_in(next_word(current));
  if (!limit || !used) return std::nullopt;
  std::uint64_t cache = 0;
  for (const std::string_view name : {"inactive_file", "active_file", "slab_reclaimable"})
    cache += number_of_line(stat, name).value_or(0);
  const std::uint64_t needed = *used - std::min(*used, cache);
  return *limit - std::min(*limit, needed);
}

std::optional<std::uint64_t> memory_left_in_machine(std::string_view meminfo) {
  const auto kibibytes = number_of_line(meminfo, "MemAvailable:");
  if (!kibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

std::vector<std::string> cgroup_directories(std::string_view self, std::string_view mounts,
                                            std::string_view controller) {
  const std::optional<Mount> mount = mount_of(mounts, controller);
  if (!mount) return {};
  std::string inside = group_of(self, controller);
  // A container may see only a mount of its own group, and still be told the whole path.
  if (mount->root != "/")
    inside = inside.starts_with(mount->root + "/") ? inside.substr(mount->root.size()) : std::string();
  std::vector<std::string> directories;
  const bool outside = inside.find("/..") != std::string::npos;  // the group is outside this namespace
  while (!outside && inside.starts_with('/') && inside.size() > 1) {
    directories.push_back(mount->point + inside);
    inside.resize(inside.rfind('/'));
  }
  directories.push_back(mount->point);
  return directories;
}

}  // namespace tg::engine

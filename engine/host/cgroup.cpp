#include "engine/host/cgroup.h"

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

// The number behind the line's first word, which is `name`.
std::optional<std::uint64_t> number_of_line(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (next_word(line) != name) continue;
    return bytes_in(next_word(line));
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

std::vector<std::string> cgroup_directories(std::string_view self, const std::string& mount) {
  constexpr std::string_view kUnified = "0::/";
  std::vector<std::string> directories;
  while (!self.empty()) {
    const std::string_view line = self.substr(0, self.find('\n'));
    self.remove_prefix(std::min(line.size() + 1, self.size()));
    if (!line.starts_with(kUnified)) continue;
    std::string path(line.substr(kUnified.size() - 1));
    while (path.size() > 1) {
      directories.push_back(mount + path);
      path.resize(std::max<std::size_t>(path.rfind('/'), 1));
    }
    break;
  }
  directories.push_back(mount);
  return directories;
}

}  // namespace tg::engine

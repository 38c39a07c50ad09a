#include "daemon/store/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "engine/storage/safetensors.h"

namespace tg::daemon {
namespace {

namespace fs = std::filesystem;
using schema::StateId;
constexpr std::string_view kPrefix = "checkpoint-", kSuffix = ".safetensors";

auto place_of(const StateId& id) { return std::tie(id.lineage, id.view, id.step); }

// The name that the version before this one used.
std::string old_name(std::uint64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%010llu", static_cast<unsigned long long>(step));
  return std::string(kPrefix) + digits + std::string(kSuffix);
}

// The numbers in a text like 1-2-3; no value if it contains anything else.
std::optional<std::vector<std::uint64_t>> numbers_in(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    const auto [stop, code] = std::from_chars(at, end, numbers.emplace_back());
    if (code != std::errc() || stop == at) return std::nullopt;
    if (stop == end) return numbers;
    if (*stop != '-') return std::nullopt;
    at = stop + 1;
  }
}

void delete_files(const std::string& directory, const std::vector<std::string>& names, std::size_t kept) {
  std::error_code ignored;
  for (std::size_t i = kept; i < names.size(); ++i) fs::remove(fs::path(directory) / names[i], ignored);
}

}  // namespace

std::string checkpoint_name(const StateId& id) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%06lu-%06lu-%010llu", static_cast<unsigned long>(id.lineage),
                static_cast<unsigned long>(id.view), static_cast<unsigned long long>(id.step));
  return std::string(kPrefix) + numbers + std::string(kSuffix);
}

std::optional<StateId> state_of_checkpoint(const std::string& name) {
  if (name.size() < kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) || !name.ends_with(kSuffix))
    return std::nullopt;
  const auto numbers =
      numbers_in(std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
  if (!numbers) return std::nullopt;
  if (numbers->size() == 1 && old_name(numbers->front()) == name) return StateId{1, 1, numbers->front(), 0};
  if (numbers->size() != 3) return std::nullopt;
  const StateId id{static_cast<std::uint32_t>((*numbers)[0]), static_cast<std::uint32_t>((*numbers)[1]), (*numbers)[2],
                   0};
  if (checkpoint_name(id) != name) return std::nullopt;
  return id;
}

std::vector<std::string> checkpoints_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(directory, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::string name = entries->path().filename().string();
    if (state_of_checkpoint(name)) names.push_back(std::move(name));
  }
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return *state_of_checkpoint(a) > *state_of_checkpoint(b);
  });
  return names;
}

Status write_checkpoint(const std::string& directory, const StateId& id, const StateId& from,
                        const engine::TensorImage& state) {
  const Result<engine::FileMark> written = engine::write_image(directory + "/" + checkpoint_name(id), state);
  if (!written) return written.error();
  std::vector<std::string> names = checkpoints_in(directory);
  std::ranges::stable_partition(names, [&](const std::string& name) {
    const StateId found = *state_of_checkpoint(name);
    return found.lineage == id.lineage || place_of(found) <= place_of(from);
  });
  delete_files(directory, names, kCheckpointsKept);
  return {};
}

void delete_checkpoints(const std::string& directory) { delete_files(directory, checkpoints_in(directory), 0); }

}  // namespace tg::daemon

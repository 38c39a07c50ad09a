#include "daemon/store/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "engine/storage/safetensors.h"

namespace tg::daemon {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "checkpoint-", kSuffix = ".safetensors";
constexpr std::size_t kStepDigits = 10;  // steps sort as their names do

void delete_beyond(const std::string& directory, std::size_t kept) {
  const std::vector<std::string> names = checkpoints_in(directory);
  std::error_code ignored;
  for (std::size_t i = kept; i < names.size(); ++i) fs::remove(fs::path(directory) / names[i], ignored);
}

}  // namespace

std::string checkpoint_name(std::uint64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%0*llu", static_cast<int>(kStepDigits), static_cast<unsigned long long>(step));
  return std::string(kPrefix) + digits + std::string(kSuffix);
}

std::optional<std::uint64_t> step_of_checkpoint(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - kSuffix.size();
  std::uint64_t step = 0;
  const auto [stop, code] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (code != std::errc() || stop != end || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

std::vector<std::string> checkpoints_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(directory, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::string name = entries->path().filename().string();
    if (step_of_checkpoint(name)) names.push_back(std::move(name));
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

Status write_checkpoint(const std::string& directory, std::uint64_t step, const engine::TensorImage& state) {
  const Result<engine::FileMark> written = engine::write_image(directory + "/" + checkpoint_name(step), state);
  if (!written) return written.error();
  delete_beyond(directory, kCheckpointsKept);
  return {};
}

void delete_checkpoints(const std::string& directory) { delete_beyond(directory, 0); }

}  // namespace tg::daemon

#include "daemon/metrics/process_numbers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace tg::daemon {
namespace {

std::string read(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// /proc/self/stat after the program's name, which may contain anything: field 3 of proc(5) is the first one here.
std::vector<std::string> stat_fields() {
  const std::string stat = read("/proc/self/stat");
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(stat.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

std::optional<double> boot_seconds() {
  std::istringstream lines(read("/proc/stat"));
  for (std::string word; lines >> word;)
    if (double seconds = 0; word == "btime" && lines >> seconds) return seconds;
  return std::nullopt;
}

std::optional<double> open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/self/fd", error);
  double count = -1;  // excludes the descriptor that reads the folder
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++count;
  return error ? std::nullopt : std::optional(count);
}

}  // namespace

ProcessNumbers process_numbers() {
  ProcessNumbers numbers;
  const std::vector<std::string> fields = stat_fields();
  const auto field = [&](std::size_t number) { return std::stod(fields[number - 3]); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (fields.size() > 24 - 3) {
    numbers.cpu_seconds = (field(14) + field(15)) / ticks;
    numbers.threads = field(20);
    if (const auto boot = boot_seconds()) numbers.start_seconds = *boot + field(22) / ticks;
    numbers.virtual_bytes = field(23);
    numbers.resident_bytes = field(24) * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  numbers.open_descriptors = open_descriptors();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) numbers.max_descriptors = static_cast<double>(limit.rlim_cur);
  return numbers;
}

}  // namespace tg::daemon

// The time since it was made, without that in which the machine had more to run than processors: what the programs
// promise holds where they may run. A quarter counts always. (tests/process/patience.py says the same in Python.)
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace tg {

class Elapsed {
 public:
  std::uint64_t ms() const {
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun_).count();
    return static_cast<std::uint64_t>(std::max(whole - (waited_us() - waited_us_), whole / 4) / 1000);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Since the machine started; 0 where the kernel does not count it: then all time counts.
  static std::int64_t waited_us() {
    std::ifstream file("/proc/pressure/cpu");
    std::string line;
    std::getline(file, line);
    const std::size_t total = line.rfind("total=");
    return total == std::string::npos ? 0 : std::stoll(line.substr(total + 6));
  }

  std::int64_t waited_us_ = waited_us();
  Clock::time_point begun_ = Clock::now();
};

}  // namespace tg

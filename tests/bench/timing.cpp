#include "tests/bench/timing.h"

#include <algorithm>
#include <ctime>

namespace tg::kernels {
namespace {

double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double rate_of(const std::function<void()>& run, std::size_t elements) {
  constexpr double kLeast = 2e6;  // ns; repeats short runs until the clock is fine enough
  std::size_t repeats = 0;
  const double start = processor_ns();
  double spent = 0;
  do {
    run();
    ++repeats;
    spent = processor_ns() - start;
  } while (spent < kLeast);
  return static_cast<double>(elements) * static_cast<double>(repeats) / spent;
}

}  // namespace

volatile float float_sink;
volatile std::uint64_t word_sink;

double Timed::median() {
  std::ranges::sort(rates);
  return rates[rates.size() / 2];
}

void time_all(std::vector<Timed>& list, std::size_t elements, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up
    for (Timed& timed : list) {
      const double rate = rate_of(timed.run, timed.elements > 0 ? timed.elements : elements);
      if (round >= 0) timed.rates.push_back(rate);
    }
  }
}

}  // namespace tg::kernels

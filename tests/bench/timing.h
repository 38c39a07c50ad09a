// Timing by this thread's processor time: what other processes take of the core does not count, and the work here never
// waits. Everything in a list takes its turn in every round, so a neighbour's load falls on all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tg::kernels {

struct Timed {
  std::string name;
  std::function<void()> run;
  std::size_t elements = 0;        // in one run; 0: those of time_all
  std::vector<double> rates = {};  // 10^9 elements per second, one per round

  double median();
};

// One round to warm up, then `rounds` of them.
void time_all(std::vector<Timed>& list, std::size_t elements, int rounds);

// Takes results that are not looked at.
extern volatile float float_sink;
extern volatile std::uint64_t word_sink;

}  // namespace tg::kernels

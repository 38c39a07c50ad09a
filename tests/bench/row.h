// One line of a benchmark: a number, its ratio to a limit measured in the same run, and what the ratio
// should be.
#pragma once

#include <string>

namespace tg::kernels {

struct Row {
  std::string name;
  double value = 0;
  const char* unit = "G/s";
  double ratio = 0;
  double target = 0;  // for the ratio; 0: none
  bool most = false;  // the target is an upper bound
};

void print(const Row& row);

}  // namespace tg::kernels

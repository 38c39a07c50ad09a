#include "daemon/measure/crew_costs.h"

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

namespace tg::daemon {

CodecCosts measure_crew(const kernels::Kernels& kernels, std::size_t workers, std::size_t parameters,
                        std::size_t members, double zeros, std::size_t most_elements) {
  if (workers <= 1) return measure_codec(kernels, parameters, members, zeros, most_elements);
  std::vector<CodecCosts> measured(workers);
  std::barrier together(static_cast<std::ptrdiff_t>(workers));
  const auto measure = [&](std::size_t index) {
    together.arrive_and_wait();
    measured[index] =
        measure_codec(kernels, parameters, members, zeros, std::max(most_elements / workers, kLeastChunkParameters));
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(measure, i);
  measure(0);
  threads.clear();  // joins
  CodecCosts crew = measured[0];
  for (const KernelCost& kernel : kKernelCosts) {
    double rate = 0;  // elements per second, of all
    for (CodecCosts& one : measured) rate += 1 / *kernel.field(one);
    *kernel.field(crew) = 1 / rate;
  }
  return crew;
}

}  // namespace tg::daemon

#include "daemon/measure/crew_costs.h"

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "engine/processors.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kLeastPart = 1u << 20;  // elements of a thread: its arrays do not fit a core's own caches

}  // namespace

CodecCosts measure_crew(const kernels::Kernels& kernels, std::size_t workers, std::size_t parameters,
                        std::size_t members, double zeros, std::size_t most_elements) {
  workers = std::min(workers, static_cast<std::size_t>(engine::usable_processors()));
  if (workers <= 1) return measure_codec(kernels, parameters, members, zeros, most_elements);
  std::vector<CodecCosts> measured(workers);
  std::barrier together(static_cast<std::ptrdiff_t>(workers));
  const auto measure = [&](std::size_t index) {
    measured[index] = measure_codec(kernels, parameters, members, zeros, std::max(most_elements / workers, kLeastPart),
                                    [&] { together.arrive_and_wait(); });
  };
  {
    std::vector<std::jthread> threads;  // joined at the end of the block
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(measure, i);
    measure(0);
  }
  CodecCosts crew = measured[0];
  for (const KernelCost& kernel : kKernelCosts) {
    double rate = 0;  // elements per second, of all
    for (CodecCosts& one : measured) rate += 1 / *kernel.field(one);
    *kernel.field(crew) = 1 / rate;
  }
  return crew;
}

}  // namespace tg::daemon

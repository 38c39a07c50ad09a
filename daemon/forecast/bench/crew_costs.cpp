#include "daemon/forecast/bench/crew_costs.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>
#include <vector>

#include "engine/host/processors.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kLeastPart = 1u << 20;  // elements of a thread: its arrays do not fit a core's own caches

}  // namespace

CodecCosts measure_crew(const kernels::Kernels& kernels, std::size_t workers, const CodecCase& what,
                        const CodecTiming& timing) {
  workers = std::min(workers, static_cast<std::size_t>(engine::usable_processors()));
  if (workers <= 1) return measure_codec(kernels, what, timing);
  std::vector<CodecCosts> measured(workers);
  std::vector<std::exception_ptr> failed(workers);
  std::barrier together(static_cast<std::ptrdiff_t>(workers));
  CodecCase part = what;
  part.most_elements = std::max(what.most_elements / workers, kLeastPart);
  const CodecTiming at_once{[&] { together.arrive_and_wait(); }, timing.stop};
  const auto measure = [&](std::size_t index) {
    try {
      measured[index] = measure_codec(kernels, part, at_once);
    } catch (...) {
      failed[index] = std::current_exception();
    }
    together.arrive_and_drop();  // who stops or fails before the others is not waited for
  };
  {
    std::vector<std::jthread> threads;  // joined at the end of the block, or by an exception
    try {
      for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(measure, i);
    } catch (...) {
      for (std::size_t i = threads.size(); i < workers; ++i) together.arrive_and_drop();  // this one, and those missing
      throw;
    }
    measure(0);
  }
  for (const std::exception_ptr& one : failed)
    if (one) std::rethrow_exception(one);
  CodecCosts crew = measured[0];
  for (const KernelCost& kernel : kKernelCosts) {
    double rate = 0;  // elements per second, of all
    for (CodecCosts& one : measured) rate += 1 / *kernel.field(one);
    *kernel.field(crew) = 1 / rate;
  }
  return crew;
}

}  // namespace tg::daemon

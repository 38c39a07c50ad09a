#include "engine/cpu/team.h"

#include <omp.h>

namespace tg::engine::cpu {

Team::Team() : threads_(omp_get_max_threads()) {}

void Team::share_out(std::size_t count, const Part& part) {
#pragma omp parallel num_threads(threads_)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto team = static_cast<std::size_t>(omp_get_num_threads());
    part(count * thread / team, count * (thread + 1) / team, thread);
    parts_done_.fetch_add(1, std::memory_order_release);
  }
  parts_done_.load(std::memory_order_acquire);
}

}  // namespace tg::engine::cpu

// One thread that writes one word to the host's memory.
#pragma once

#include <cstdint>

#include "engine/cuda/operators/bodies/grid.h"

namespace tg::engine::cuda::bodies {

struct Announce {
  const std::uint64_t* number;
  volatile std::uint64_t* word;

  std::uint64_t threads() const { return 1; }
  TG_HOST_DEVICE void operator()(std::uint64_t /*thread*/) const { *word = *number; }
};

}  // namespace tg::engine::cuda::bodies

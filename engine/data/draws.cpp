#include "engine/data/draws.h"

#include "kernels/kernels.h"

namespace tg::engine {

Draws::Draws(std::uint64_t seed, DrawDomain domain, std::uint64_t index)
    : seed_(seed),
      counter_{0, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(domain),
               static_cast<std::uint32_t>(index >> 32)} {}

void Draws::refill() {
  kernels::philox4x32(counter_, seed_, words_);
  ++counter_[0];
  used_ = 0;
}

}  // namespace tg::engine

// An engine that computes nothing: it reports gradients made before the first step, so that a run exercises the mesh,
// the frames, the kernels, the exchange and the state at full speed, even with models too large to train here.
//
// The first backward into an array copies the gradients into its memory space; later ones leave them as they are and
// report every segment at once, last layer first. factor is ignored: the gradients are what the member would ternarize.
// forward returns 0, evaluate counts nothing, and the measured statistics are their initial values. The caller of
// backward must not change the array in between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "kernels/memory_space.h"

namespace tg::engine {

struct ReplayOptions {
  std::uint64_t seed = 0;
  std::uint32_t rank = 0;
  double zeros = 0.68;  // share of zero codes (replay/gaussian.h)
  std::string path;     // file of recorded gradients (replay/recorded.h); empty = generated ones
};

// space: that of the arrays given to backward; it must outlive the engine.
Result<std::unique_ptr<Engine>> make_replay_engine(const Model& model, const ReplayOptions& options,
                                                   kernels::MemorySpace& space);

}  // namespace tg::engine

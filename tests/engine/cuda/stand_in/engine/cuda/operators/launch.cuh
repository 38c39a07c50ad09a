// Replaces engine/cuda/operators/launch.cuh: the grids of its launches run on the host, thread by thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cuda/operators/bodies/grid.h"
#include "tests/engine/cuda/stand_in/device.h"

namespace tg::engine::cuda {

template <class Body>
void launch(const Body& body, cudaStream_t stream) {
  stand_in::enqueue(stream, [body] {
    for (std::uint64_t thread = body.threads(); thread-- > 0;) body(thread);
  });
}

template <class Body>
void launch_steps(const Body& body, cudaStream_t stream) {
  stand_in::enqueue(stream, [body] {
    for (std::uint64_t block = body.blocks(); block-- > 0;) {
      std::vector<typename Body::Cell> cells(kThreads);
      for (int step = 0; step < body.steps(); ++step)
        for (int thread = kThreads; thread-- > 0;) body.step(step, block, thread, cells.data());
    }
  });
}

}  // namespace tg::engine::cuda

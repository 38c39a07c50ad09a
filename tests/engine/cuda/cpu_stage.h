// One operator of the CPU engine, on images in N, C, H, W order: what the device's operators are compared with.
#pragma once

#include "engine/graph/graph.h"
#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {

ImageShape output_of(const Attributes& attributes, const ImageShape& input);

struct CpuResult {
  Values y, dx;
};
// mask: dy counts only where y > 0 (StagePlan::mask_taken). x and dy: `batch` images.
CpuResult run_on_cpu(const Attributes& attributes, const ImageShape& input, int batch, const Values& x,
                     const Values& dy, bool mask = false);

}  // namespace tg::engine::cuda

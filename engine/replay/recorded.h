// Recorded gradients: a file of the model's real elements in segment order, float32 little-endian, and nothing else.
//
//   file := segment*          one per segment of the table, in its order, without padding
//   segment := f32le*         element_count of them
//
// tests/lab/record writes such files. Any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"
#include "kernels/base/status.h"

namespace tg::engine {

// "{rank}" in a path stands for the member's rank, so that one job names a file per member.
std::string recorded_path(std::string path, std::size_t rank);

// Errors name the path and what to do: no file, a size that differs from the model's, a value that is not finite.
Result<std::vector<float>> read_recorded(const std::string& path, const Model& model);

}  // namespace tg::engine

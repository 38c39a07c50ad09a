// The state files that a run writes while it trains: checkpoint-STEP.safetensors, the two newest of them. Each is
// replaced atomically; one that cannot be written leaves the others as they are. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/storage/tensor_image.h"
#include "kernels/base/status.h"

namespace tg::daemon {

inline constexpr std::size_t kCheckpointsKept = 2;

std::string checkpoint_name(std::uint64_t step);
std::optional<std::uint64_t> step_of_checkpoint(const std::string& name);
std::vector<std::string> checkpoints_in(const std::string& directory);  // names, the furthest first

// Then deletes all but the newest kCheckpointsKept.
Status write_checkpoint(const std::string& directory, std::uint64_t step, const engine::TensorImage& state);
void delete_checkpoints(const std::string& directory);

}  // namespace tg::daemon

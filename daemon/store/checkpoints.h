// The state files that a run writes while it trains: checkpoint-LINEAGE-VIEW-STEP.safetensors, the two newest of them
// (store/state_facts.h says what is in their metadata). Each is replaced atomically; one that cannot be written leaves
// the others as they are. The version before this one wrote checkpoint-STEP.safetensors: lineage 1, view 1. One thread
// at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/storage/tensor_image.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

inline constexpr std::size_t kCheckpointsKept = 2;

std::string checkpoint_name(const schema::StateId& id);
// Without its digest, of which a name says nothing.
std::optional<schema::StateId> state_of_checkpoint(const std::string& name);
std::vector<std::string> checkpoints_in(const std::string& directory);  // names, the newest first

// Then deletes all but the newest kCheckpointsKept. from: the state that this lineage began with; lineage 0 = none, at
// the run's beginning. What is further than that and of an earlier lineage was given up when the run went back: it goes
// first, and what this lineage goes on from stays until two newer ones are there.
Status write_checkpoint(const std::string& directory, const schema::StateId& id, const schema::StateId& from,
                        const engine::TensorImage& state);
void delete_checkpoints(const std::string& directory);

}  // namespace tg::daemon

// The checkpoints of a run, checkpoint-LINEAGE-VIEW-STEP.safetensors: the two newest are kept (store/state_facts.h
// lists their metadata). Each is replaced atomically; a failed write leaves the others as they are. The version before
// this one wrote checkpoint-STEP.safetensors: lineage 1, view 1. One thread at a time.
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
// The id that a name states; it has no digest.
std::optional<schema::StateId> state_of_checkpoint(const std::string& name);
std::vector<std::string> checkpoints_in(const std::string& directory);  // names, newest first

// Writes a checkpoint, then deletes all but the newest kCheckpointsKept. from: the state that this lineage began with;
// its lineage is 0 at the run's beginning. Checkpoints of earlier lineages beyond that state were given up when the run
// went back; they are deleted first, and the state that this lineage began with stays until there are two newer ones.
Status write_checkpoint(const std::string& directory, const schema::StateId& id, const schema::StateId& from,
                        const engine::TensorImage& state);
void delete_checkpoints(const std::string& directory);

}  // namespace tg::daemon

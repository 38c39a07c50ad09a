// Reads the arrays of a saved state from its file, flat and padded as in the model's tables, for Replica::restore.
#pragma once

#include "daemon/store/artefacts.h"
#include "engine/model.h"
#include "kernels/base/status.h"

namespace tg::daemon {

// Checks that the file has exactly the tensors of this model, with this number of slots and with or without an average
// and a best model, each in its shape; errors (kCorrupt) name the file and the tensor. The arrays read the file and
// keep it open; any thread. Padding reads as 0.
Result<StateArrays> arrays_in(const StateFile& file, const engine::Model& model, int slots, bool average,
                              bool best = false);

}  // namespace tg::daemon

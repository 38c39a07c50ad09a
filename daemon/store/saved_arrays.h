// The arrays of a state as a file has them: flat and padded as the model's tables say, to be restored
// (Replica::restore).
#pragma once

#include "daemon/store/artefacts.h"
#include "engine/model.h"
#include "kernels/base/status.h"

namespace tg::daemon {

// Checks that the file has every tensor of this model, with this number of slots and with or without an average and a
// best model, in its shape, and no other; errors (kCorrupt) name the file and the tensor. The arrays read the file and
// keep it open; any thread. Padding reads as 0.
Result<StateArrays> arrays_in(const StateFile& file, const engine::Model& model, int slots, bool average,
                              bool best = false);

}  // namespace tg::daemon

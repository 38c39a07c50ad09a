// The arrays of one state, wherever they are: what a file of it is made of, and what a replica begins with.
#pragma once

#include <vector>

#include "engine/storage/tensor_image.h"

namespace tg::daemon {

// Flat and padded as the model's tables say.
struct StateArrays {
  engine::ReadFloats parameters;
  std::vector<engine::ReadFloats> slots;
  engine::ReadFloats average;  // empty where the parameters stand for it
  engine::ReadFloats statistics;
  engine::ReadFloats best, best_statistics;  // the best evaluation's model; empty where none is kept
};

}  // namespace tg::daemon

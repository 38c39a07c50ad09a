// Small networks that hold each layer in each place where an engine treats it differently: fused or not, read once or
// twice, in every shape of window.
#pragma once

#include <span>

#include "engine/model.h"

namespace tg::engine {

struct SmallNetwork {
  const char* name;
  Result<Model> (*model)();
};

std::span<const SmallNetwork> small_networks();

}  // namespace tg::engine

// The kinds of optimizer and their names (words.h). The kernels implement them; a job chooses one.
#pragma once

#include <cstdint>

#include "kernels/base/words.h"

namespace tg {

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdam };
constexpr auto words_of(OptimizerKind) { return words("sgd", "momentum", "adam"); }

}  // namespace tg

// The update rules, with their words (words.h). The kernels carry them out; a job chooses one. All that depends on the
// rule is a switch without a default, so that a new one does not compile until it is handled everywhere.
#pragma once

#include <cstdint>

#include "kernels/base/check.h"
#include "kernels/base/words.h"

namespace tg {

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdam, kAdamW };
constexpr auto words_of(OptimizerKind) { return words("sgd", "momentum", "adam", "adamw"); }

// How many arrays the rule keeps beside the parameters: 0, 1 or 2.
constexpr int slot_count(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
      return 1;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return 2;
  }
  TG_CHECK(false, static_cast<int>(kind));
}

}  // namespace tg

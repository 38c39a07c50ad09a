// What a run trains on, in one sentence, and what in it may not be what its user meant. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/dataset.h"
#include "engine/recipe.h"

namespace tg::engine {

// The largest class may have so many times the samples of the smallest one without a word.
inline constexpr std::size_t kUnequalClasses = 10;

struct DataSummary {
  std::string summary;
  std::vector<std::string> warnings;  // a sentence each
};
// What the job says itself, and tgd did not choose.
struct Asked {
  bool flip = false, class_weights = false;
};
DataSummary summarize_data(const Dataset& data, const Recipe& recipe, std::uint64_t global_batch, const Asked& asked);

}  // namespace tg::engine

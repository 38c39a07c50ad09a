// What batch normalizations measure in a step: each member on its own samples, and the mean of all, which the running
// statistics follow. It travels in the step frames, without padding. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/segment.h"
#include "schema/place.h"

namespace tg::daemon {

struct BatchStatistics {
  engine::SegmentTable table;  // the model's; empty for one without
  Per<Rank, float> shares;     // each member's share of the batch, b_r / B

  std::size_t count() const { return table.parameter_count(); }
  // The table's first entry with a value that is not finite.
  std::optional<std::size_t> first_not_finite(std::span<const float> measured) const;
  // The mean, weighted by the shares, added in rank order in float32 with one rounding per operation: the same bits
  // everywhere.
  std::vector<float> mean(const Per<Rank, std::span<const float>>& measured) const;
};

}  // namespace tg::daemon

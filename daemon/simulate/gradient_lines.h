// The lines of gradients.jsonl: what the first member's gradient of a step looks like, segment by segment, and whole;
// its codes, and what all members' codes add up to. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/exchange/layout.h"
#include "engine/segment.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"

namespace tg::daemon {

// gradients: flat, by rank, each seat being its rank; of the step that leads to the state of so many steps. Segments
// that travel in codes are clipped at the member's own bound (code_rule.h) and have their codes, as they were sent; the
// others have none and are not clipped. A line for each segment that learns, in the network's order, then one whose
// segment is null: all of them as one vector, each with its own bound.
std::vector<std::string> gradient_lines(std::uint64_t step, const schema::JobSpec& job, const Layout& layout,
                                        const engine::SegmentTable& segments,
                                        std::span<const std::span<const float>> gradients,
                                        const kernels::Kernels& kernels);

}  // namespace tg::daemon

// The lines of gradients.jsonl: what a member's gradient of a step looks like, segment by segment, and whole. Any
// thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/exchange/layout.h"
#include "engine/segment.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"

namespace tg::daemon {

// gradient: flat, of the step that leads to the state of so many steps. Segments that travel in codes are clipped at
// the member's own bound (gradient_statistics.h), the others are not. A line for each segment that learns, in the
// network's order, then one whose segment is null: all of them as one vector, each with its own bound.
std::vector<std::string> gradient_lines(std::uint64_t step, const schema::JobSpec& job, const Layout& layout,
                                        const engine::SegmentTable& segments, std::span<const float> gradient,
                                        const kernels::Kernels& kernels);

}  // namespace tg::daemon

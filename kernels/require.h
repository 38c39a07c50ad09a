// Preconditions of the kernels, checked in an object of the baseline instruction set: TG_CHECK itself is inline code,
// which an instruction-set file must not emit. A caller that breaks one is our bug and stops the process.
#pragma once

#include <cstddef>

#include "kernels/kernels.h"

namespace tg::kernels {

void require_capacity(std::size_t payload_bytes, std::size_t needed_bytes);
void require_same_size(std::size_t elements, std::size_t other_elements);
void require_members(int members);
// The runs are multiples of kBlock that add up to `elements`.
void require_runs(std::span<const std::size_t> runs, std::size_t elements);
void require_received(const Received& received, std::size_t elements);
// Parameters and the slots that the optimizer uses have `elements` each, before and after.
void require_state(OptimizerKind kind, std::size_t elements, const ConstStateSpan& from, const StateSpan& to);

}  // namespace tg::kernels

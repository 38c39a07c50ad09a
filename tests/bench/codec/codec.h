// The budgets of the codec: coded sizes over the entropy, speeds over a plain read-and-sum pass of the same run, and
// the update that takes the codes of eight members over the plain one, each with its target and whether it is met.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/bench/codec/recorded.h"

namespace tg::kernels {

// Made gradients of `elements` elements, of each sparseness. False, with a message on stderr, if a payload does not
// come back.
bool bench_made(std::size_t elements, int rounds);
// The same of recorded ones, over a read-and-sum of `elements` floats.
bool bench_recorded(std::vector<RecordedSubject>& recorded, std::size_t elements, int rounds);

}  // namespace tg::kernels

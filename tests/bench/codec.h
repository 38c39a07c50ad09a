// The budgets of the codec: coded sizes over the entropy, speeds over a plain read-and-sum pass of the same run, and
// the update that takes the codes of eight members over the plain one, each with its target and whether it is met.
#pragma once

#include <cstddef>
#include <string>

namespace tg::kernels {

// Codes of `elements` elements with 68, 92 and 99 % zeros, and those of the gradient in the file if one is named.
// Returns false, with a word on stderr, if the file cannot be read or a payload does not come back.
bool bench_codec(std::size_t elements, int rounds, const std::string& gradients_file);

}  // namespace tg::kernels

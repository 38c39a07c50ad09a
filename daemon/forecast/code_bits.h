// Bits of payloads, expected from the share of zeros. Pure.
#pragma once

#include <cstddef>

#include "daemon/exchange/layout.h"

namespace tg::daemon {

// Bits for each element of a ternary payload.
struct CodeBits {
  double codes = 0;  // a member's own codes
  double sums = 0;   // the sums of all members' codes
};

// Assumes that members' codes are independent, each nonzero with probability 1 - zeros, both signs alike. Raw: mask,
// signs and unary planes (kernels.h); entropy: H(codes), H(sums), and kCodingLoss more.
CodeBits expected_bits(schema::Coding coding, double zeros, std::size_t members);

// Payload bits that a member of this layout sends per step, mean over the members.
double sent_bits(const Layout& layout, double zeros);

inline constexpr double kCodingLoss = 1.008;  // measured: coded size over entropy of large chunks

}  // namespace tg::daemon

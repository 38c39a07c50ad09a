// What gradients' codes cost in bits, from the share of zeros among them. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "schema/choices.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Bits for each element of a ternary payload.
struct CodeBits {
  double codes = 0;  // a member's own codes
  double sums = 0;   // the sums of all members' codes
};

// Assumes that members' codes are independent, each nonzero with probability 1 - zeros, both signs alike. Raw: mask,
// signs and unary planes (kernels.h); entropy: H(codes), H(sums), and kCodingLoss more.
CodeBits expected_bits(schema::Coding coding, double zeros, std::size_t members);

inline constexpr double kCodingLoss = 1.008;  // measured: coded size over entropy of large chunks

struct Zeros {
  double share = 0;
  std::string source;  // where the share is from, for a person
};

// The share of zero codes in a job's gradients: replayed gaussian ones have what the job asks for, others what the
// model was measured to have while it trained at clip-sigma 2.5 (tests/lab/README.md, "Zeros of each network").
Zeros zeros_of(const schema::JobSpec& job);

}  // namespace tg::daemon

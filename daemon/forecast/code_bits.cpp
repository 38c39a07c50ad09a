#include "daemon/forecast/code_bits.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tg::daemon {
namespace {

// Probability of every sum from -members to +members.
std::vector<double> distribution(double zeros, std::size_t members) {
  const double sign = (1 - zeros) / 2;
  std::vector<double> now{1};
  for (std::size_t n = 0; n < members; ++n) {
    std::vector<double> next(now.size() + 2, 0.0);
    for (std::size_t i = 0; i < now.size(); ++i) {
      next[i] += now[i] * sign;
      next[i + 1] += now[i] * zeros;
      next[i + 2] += now[i] * sign;
    }
    now = std::move(next);
  }
  return now;
}

double entropy(const std::vector<double>& probabilities) {
  double bits = 0;
  for (const double p : probabilities)
    if (p > 0) bits -= p * std::log2(p);
  return bits;
}

// The mask, a sign for each nonzero, and one bit per element for every level that it reaches below the last.
double unary_bits(const std::vector<double>& probabilities, std::size_t members) {
  double bits = 1;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const std::size_t magnitude = i > members ? i - members : members - i;
    if (magnitude > 0) bits += probabilities[i] * (1 + static_cast<double>(std::min(magnitude, members - 1)));
  }
  return bits;
}

}  // namespace

CodeBits expected_bits(schema::Coding coding, double zeros, std::size_t members) {
  zeros = std::clamp(zeros, 0.0, 1.0);
  const std::vector<double> codes = distribution(zeros, 1), sums = distribution(zeros, members);
  if (coding == schema::Coding::kEntropy) return {entropy(codes) * kCodingLoss, entropy(sums) * kCodingLoss};
  return {2 - zeros, unary_bits(sums, members)};
}

double sent_bits(const Layout& layout, double zeros) {
  const double members = static_cast<double>(layout.members);
  const CodeBits ternary = expected_bits(layout.coding, zeros, layout.members);
  double bits = 0;
  for (const ChunkLayout& chunk : layout.chunks) {
    const double plain = chunk.format == GradientFormat::kFloat16 ? 16 : 32;
    const double contribution = chunk.coded() ? ternary.codes : plain;
    const double total = chunk.coded() ? ternary.sums : plain;
    const double per_member =
        layout.sharded() ? (members - 1) / members * (contribution + total) : (members - 1) * contribution;
    bits += static_cast<double>(chunk.size()) * per_member;
  }
  return bits;
}

}  // namespace tg::daemon

// A rule by which N members make one gradient out of theirs, as plainly as possible: a function of the members'
// gradients and their segment table, in one process, without chunks, frames or threads. TernGrad is one of them and
// equals the mesh bit for bit; the others are what its paper, its reviewers and its successors name.
//
// What a member keeps from step to step (the errors of what it sent, say) is the rule's own state: one object, one run.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/segment.h"
#include "kernels/kernels.h"
#include "tests/simulation/simulator/random.h"

namespace tg::plain {

// One step of one run.
struct Round {
  const kernels::Kernels& kernels;  // any of them: all give the same bits
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  bool priced = true;                   // whether the bits are asked for; if not, they mean nothing
  std::vector<std::size_t> seats = {};  // whose draws the members use, by rank; empty: their ranks

  std::uint32_t seat(std::size_t rank) const { return static_cast<std::uint32_t>(seats.empty() ? rank : seats[rank]); }
  kernels::DrawKey key(std::size_t rank, std::size_t segment) const {
    return {seed, seat(rank), static_cast<std::uint32_t>(segment), step};
  }
  // A member's numbers for the rules that tgd does not have.
  simulation::Random draws(std::size_t rank, std::size_t segment) const;
};

// Gradients by rank: a whole flat array each, or its part that is one segment, with the padding, which is 0.
using Gradients = std::span<const std::span<const float>>;

// The bits that a step sends, for all parameters together.
struct Bits {
  double sent = 0;  // by a member, the mean over the members: codes at their entropy of order 0 by segment, and scalers
  double sum = 0;   // for all members: whole numbers at their entropy if codes have a unit in common, else 32 each
  Bits& operator+=(const Bits& more) {
    sent += more.sent;
    sum += more.sum;
    return *this;
  }
};

class Rule {
 public:
  virtual ~Rule() = default;
  // mean: what the members apply. Its padding is 0 or left as it is.
  virtual Bits mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
                    std::span<float> mean) = 0;
  // What a member keeps from step to step, in bytes.
  virtual std::size_t own_bytes() const { return 0; }
  // How many gradients go into one update.
  virtual std::size_t at_a_time(std::size_t members) const { return members; }
};

// A rule that takes segments one by one.
class SegmentRule : public Rule {
 public:
  Bits mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
            std::span<float> mean) override;
  // gradients, mean: of this segment.
  virtual Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                   std::span<float> mean) = 0;
};

// Numbers that members keep, by rank and segment; 0 at first.
class OwnState {
 public:
  std::span<float> of(std::size_t rank, std::size_t segment, std::size_t count);
  std::size_t bytes() const;  // rank 0's

 private:
  std::map<std::pair<std::size_t, std::size_t>, std::vector<float>> values_;
};

// How often each value came.
class Histogram {
 public:
  void add(std::span<const int> values);
  double bits() const;            // for all that came, at the entropy of order 0
  double share(int value) const;  // 0 .. 1
  std::uint64_t total() const { return total_; }

 private:
  std::map<int, std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

using Codes = std::vector<std::vector<int>>;  // by rank

double entropy_bits(const Round& round, std::span<const int> values);
// Returns the bits of the first `count` codes, whose unit all members share: they are sent without scalers, their sum
// as whole numbers.
Bits bits_of(const Round& round, const Codes& codes, std::size_t count);
std::vector<int> sum_of(const Codes& codes);
double largest(std::span<const float> values);  // |value|

}  // namespace tg::plain

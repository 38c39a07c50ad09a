// The two counts of a run's progress. They never mix, because a round may come to be several steps
// (DESIGN.md, section 4b); today they are equal, and only daemon/step/member.cpp turns one into the other.
//
//   Step    one forward and backward pass. The data stream, the schedule, evaluation and the job's `steps` count these.
//   Round   one exchange. Frames, draws, gates, digests, commit and undo count these.
//
// The value is the number that is done. On the wire and in records both are plain integers.
#pragma once

#include <compare>
#include <cstdint>

namespace tg {

template <class Tag>
class Ordinal {
 public:
  constexpr Ordinal() = default;
  constexpr explicit Ordinal(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }
  constexpr Ordinal next() const { return Ordinal(value_ + 1); }
  constexpr auto operator<=>(const Ordinal&) const = default;

 private:
  std::uint64_t value_ = 0;
};

using Step = Ordinal<struct StepTag>;
using Round = Ordinal<struct RoundTag>;

}  // namespace tg

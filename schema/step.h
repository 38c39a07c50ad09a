// How far a run is. There are two numbers, which never mix, because a round may come to be several steps
// (DESIGN.md, section 4b); today they are equal, and only daemon/step/member.cpp turns one into the other.
//
//   Step    one forward and backward. Stream position, schedule, evaluation, `steps` of the job.
//   Round   one exchange. Frames, draws, gates, digests, commit, undo.
//
// As a count: so many of them are done. On the wire and in records both are plain integers.
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

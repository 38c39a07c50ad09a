// The order in which links are measured, so that nothing else fills either of their ends: in each round every node has
// at most one partner (a tournament, by the circle method), and the one of lower seat sends first, then the other.
// Pure.
//
//   slot    0      1      2      3      4      5
//   N = 4   0>3    3>0    2>3    3>2    1>3    3>1
//           1>2    2>1    0>1    1>0    0>2    2>0
#pragma once

#include <cstddef>
#include <optional>

#include "schema/limits.h"
#include "schema/place.h"

namespace tg::daemon {

// The two halves of each round.
inline std::size_t slots_for(std::size_t nodes) { return 2 * schema::examine_rounds(nodes); }

// The partner of a round; nobody where their number is odd and this node's turn to rest.
inline std::optional<Seat> partner_of(Seat self, std::size_t round, std::size_t nodes) {
  const std::size_t others = schema::examine_rounds(nodes);  // odd: one seat stands still, the others go round it
  for (std::size_t other = 0; other < nodes; ++other) {
    if (other == self.index()) continue;
    const bool fixed = other == others || self.index() == others;
    const std::size_t moving = other == others ? self.index() : other;
    if ((fixed ? 2 * moving : self.index() + other) % others == round) return Seat(other);
  }
  return std::nullopt;
}

// The node that this one sends to in that slot.
inline std::optional<Seat> receiver_in(std::size_t slot, Seat self, std::size_t nodes) {
  const std::optional<Seat> partner = partner_of(self, slot / 2, nodes);
  if (!partner || (self < *partner) != (slot % 2 == 0)) return std::nullopt;
  return partner;
}

}  // namespace tg::daemon

// The members of a run, and the number of that list, which every frame of the run carries. Every sum depends on it.
// Immutable; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schema/place.h"

namespace tg::daemon {

class View {
 public:
  static constexpr std::uint32_t kFirst = 1;  // number of a run's first view

  View() = default;
  // seats ascend: a member's rank is its place among them.
  View(std::uint32_t number, std::vector<Seat> seats) : number_(number), seats_(std::move(seats)) {}
  // The first view of a run of all nodes.
  static View of_all(std::size_t nodes) {
    std::vector<Seat> seats;
    for (const Seat seat : places<Seat>(nodes)) seats.push_back(seat);
    return {kFirst, std::move(seats)};
  }

  std::uint32_t number() const { return number_; }
  std::size_t size() const { return seats_.size(); }
  Seat seat(Rank rank) const { return seats_[rank.index()]; }
  // The node's rank; nothing if it is not a member.
  std::optional<Rank> rank(Seat seat) const {
    const auto found = std::lower_bound(seats_.begin(), seats_.end(), seat);
    if (found == seats_.end() || *found != seat) return std::nullopt;
    return Rank(static_cast<std::size_t>(found - seats_.begin()));
  }

 private:
  std::uint32_t number_ = kFirst;
  std::vector<Seat> seats_;  // by rank
};

}  // namespace tg::daemon

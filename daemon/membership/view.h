// View is the numbered list of a run's members. Every frame of the run carries the number; every sum depends on the
// list. A member's seat and state directory are a voter: it decides on the next view, even as a restarted process
// (view_change.h). Immutable; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schema/frame/start_frames.h"
#include "schema/frame/view_frames.h"
#include "schema/place.h"

namespace tg::daemon {

class View {
 public:
  static constexpr std::uint32_t kFirst = 1;  // the number of a run's first view

  View() = default;
  // members ascend by seat: a member's rank is its place among them.
  View(std::uint32_t number, std::vector<schema::ViewMember> members) : number_(number), members_(std::move(members)) {}
  explicit View(const schema::NextView& decided) : View(decided.number, decided.members) {}
  // Members with a weight and nothing else.
  View(std::uint32_t number, const std::vector<Seat>& seats, const Per<Rank, std::uint16_t>& weights)
      : number_(number) {
    for (const Rank rank : places<Rank>(seats.size()))
      members_.push_back({.seat = static_cast<std::uint32_t>(seats[rank.index()].index()), .weight = weights[rank]});
  }
  View(std::uint32_t number, const std::vector<Seat>& seats)
      : View(number, seats, Per<Rank, std::uint16_t>(seats.size(), 1)) {}
  // The first view of a run of all nodes, with these weights.
  static View of_all(const Per<Seat, std::uint16_t>& weights) {
    std::vector<Seat> seats;
    for (const Seat seat : weights.places()) seats.push_back(seat);
    return {kFirst, seats, Per<Rank, std::uint16_t>(weights.begin(), weights.end())};
  }
  // The first view of a run of these nodes; empty: all.
  static View of(const std::vector<Seat>& members, const Per<Seat, std::uint16_t>& weights) {
    if (members.empty()) return of_all(weights);
    Per<Rank, std::uint16_t> chosen;
    for (const Seat seat : members) chosen.push_back(weights[seat]);
    return {kFirst, members, chosen};
  }
  static View of_all(std::size_t nodes) { return of_all(Per<Seat, std::uint16_t>(nodes, 1)); }

  std::uint32_t number() const { return number_; }
  std::size_t size() const { return members_.size(); }
  const std::vector<schema::ViewMember>& members() const { return members_; }  // by rank
  Seat seat(Rank rank) const { return Seat(members_[rank.index()].seat); }
  // The node's rank; nothing if it is not a member.
  std::optional<Rank> rank(Seat seat) const {
    const auto found = std::ranges::lower_bound(members_, seat.index(), {}, &schema::ViewMember::seat);
    if (found == members_.end() || found->seat != seat.index()) return std::nullopt;
    return Rank(static_cast<std::size_t>(found - members_.begin()));
  }
  Per<Rank, std::uint16_t> weights() const {  // the members' shares of a batch
    Per<Rank, std::uint16_t> weights;
    for (const schema::ViewMember& member : members_) weights.push_back(member.weight);
    return weights;
  }
  bool has(Seat seat) const { return rank(seat).has_value(); }
  // The view that made it a member; 0: it is none.
  std::uint32_t since(Seat seat) const {
    const std::optional<Rank> place = rank(seat);
    return place ? members_[place->index()].since : 0;
  }
  // Whether the node votes: its state directory is the member's.
  bool has_voter(Seat seat, std::uint64_t directory) const {
    const std::optional<Rank> place = rank(seat);
    return place && members_[place->index()].directory == directory;
  }
  std::vector<Seat> seats() const { return seats_of(members_); }  // by rank
  // The longest member first; of equals the lowest seat.
  std::vector<Seat> by_seniority() const {
    std::vector<schema::ViewMember> members = members_;
    std::ranges::stable_sort(members, {}, &schema::ViewMember::since);
    return seats_of(members);
  }

 private:
  static std::vector<Seat> seats_of(const std::vector<schema::ViewMember>& members) {
    std::vector<Seat> seats;
    for (const schema::ViewMember& member : members) seats.emplace_back(member.seat);
    return seats;
  }

  std::uint32_t number_ = kFirst;
  std::vector<schema::ViewMember> members_;  // by rank
};

// A node's weight in the run's first view; `otherwise` if it was no member of that.
inline std::uint16_t weight_of(const schema::Commit& commit, Seat seat, std::uint16_t otherwise) {
  const auto found = std::ranges::find(commit.members, seat.index(), &schema::ViewMember::seat);
  return found == commit.members.end() ? otherwise : found->weight;
}

// Whether these voters are a quorum: more than half of the view's, or exactly half with the senior. Any two quorums
// share a voter.
inline bool is_quorum(const View& view, const std::vector<Seat>& voters) {
  if (2 * voters.size() != view.size()) return 2 * voters.size() > view.size();
  return view.size() > 0 && std::ranges::find(voters, view.by_seniority().front()) != voters.end();
}

}  // namespace tg::daemon

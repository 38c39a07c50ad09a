// View is the numbered list of a run's members. Every frame of the run carries the number; every sum depends on the
// list. A member's seat and state directory are a voter: it decides on the next view, even as a restarted process
// (view_change.h). Members are in the order of their seats in the run, the same on every node; the Seat of each is this
// node's own. Immutable; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schema/frame/start_frames.h"
#include "schema/frame/view_frames.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

class View {
 public:
  static constexpr std::uint32_t kFirst = 1;  // the number of a run's first view

  View() = default;
  // known: the nodes that this one knows, all members among them; none: nodes are numbered as the run does.
  explicit View(const schema::NextView& decided)
      : number_(decided.number), members_(decided.members), names_(decided.names) {
    for (const schema::ViewMember& member : members_) seats_.emplace_back(member.seat);
  }
  View(const schema::NextView& decided, const schema::NodeList& known)
      : number_(decided.number), members_(decided.members), names_(decided.names) {
    for (const schema::ViewMember& member : members_) seats_.push_back(known.place_of(names_[member.seat]).value());
  }
  // Members with a weight and nothing else.
  View(std::uint32_t number, const std::vector<Seat>& seats, const Per<Rank, std::uint16_t>& weights)
      : number_(number), seats_(seats.begin(), seats.end()) {
    for (const Rank rank : seats_.places())
      members_.push_back({.seat = static_cast<std::uint32_t>(seats_[rank].index()), .weight = weights[rank]});
  }
  View(std::uint32_t number, const std::vector<Seat>& seats)
      : View(number, seats, Per<Rank, std::uint16_t>(seats.size(), 1)) {}
  // The first view of a run of all nodes, with these weights.
  static View of_all(const Per<Seat, std::uint16_t>& weights) {
    std::vector<Seat> seats;
    for (const Seat seat : weights.places()) seats.push_back(seat);
    return {kFirst, seats, Per<Rank, std::uint16_t>(weights.begin(), weights.end())};
  }
  // The first view of a run of these nodes.
  static View of(const std::vector<Seat>& members, const Per<Seat, std::uint16_t>& weights) {
    Per<Rank, std::uint16_t> chosen;
    for (const Seat seat : members) chosen.push_back(weights[seat]);
    return {kFirst, members, chosen};
  }
  static View of_all(std::size_t nodes) { return of_all(Per<Seat, std::uint16_t>(nodes, 1)); }

  std::uint32_t number() const { return number_; }
  std::size_t size() const { return members_.size(); }
  const std::vector<schema::ViewMember>& members() const { return members_; }  // by rank
  const std::vector<std::string>& names() const { return names_; }             // by seat in the run
  Seat seat(Rank rank) const { return seats_[rank]; }
  // The node's rank; nothing if it is not a member.
  std::optional<Rank> rank(Seat seat) const { return seats_.place_of(seat); }
  // A member's seat in the run, and the member with that; nothing if none has it.
  std::uint32_t number_of(Seat member) const { return members_[rank(member).value().index()].seat; }
  std::optional<Seat> member_of(std::uint32_t number) const {
    const auto found = std::ranges::find(members_, number, &schema::ViewMember::seat);
    return found == members_.end() ? std::nullopt
                                   : std::optional(seats_[Rank(static_cast<std::size_t>(found - members_.begin()))]);
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
  const std::vector<Seat>& seats() const { return seats_; }  // by rank
  // The longest member first; of equals the lowest in the run.
  std::vector<Seat> by_seniority() const {
    std::vector<Seat> seats = seats_;
    std::ranges::stable_sort(seats, {}, [this](Seat seat) { return since(seat); });
    return seats;
  }

 private:
  std::uint32_t number_ = kFirst;
  std::vector<schema::ViewMember> members_;  // by rank
  std::vector<std::string> names_;
  Per<Rank, Seat> seats_;
};

inline schema::NextView first_view(const schema::Commit& commit) {
  return {.number = View::kFirst, .members = commit.members, .names = commit.names};
}

inline std::uint64_t weights_in(const schema::Commit& commit) {
  std::uint64_t sum = 0;
  for (const schema::ViewMember& member : commit.members) sum += member.weight;
  return sum;
}

// A node's weight in the run's first view; `otherwise` if it was no member of that.
inline std::uint16_t weight_of(const schema::Commit& commit, const std::string& name, std::uint16_t otherwise) {
  for (const schema::ViewMember& member : commit.members)
    if (commit.names[member.seat] == name) return member.weight;
  return otherwise;
}

// The seat of a name in a run; that of a name without one is the next.
inline std::uint32_t run_seat(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  const auto seat = static_cast<std::uint32_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return seat;
}

// Whether these voters are a quorum: more than half of the view's, or exactly half with the senior. Any two quorums
// share a voter.
inline bool is_quorum(const View& view, const std::vector<Seat>& voters) {
  if (2 * voters.size() != view.size()) return 2 * voters.size() > view.size();
  return view.size() > 0 && std::ranges::find(voters, view.by_seniority().front()) != voters.end();
}

}  // namespace tg::daemon

// The index of a node in a list. There are two kinds, which never mix, because the list of all nodes and the list of a
// view's members differ.
//
//   Seat   index among the nodes that this process knows (options/node_list.h). It is never sent: a run has its own
//          seats, by which its frames number nodes (NextView::names); a View translates.
//   Rank   index among the members of a view (daemon/membership/view.h). Layout, exchange and step use it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <vector>

namespace tg {

template <class Tag>
class Place {
 public:
  constexpr Place() = default;
  constexpr explicit Place(std::size_t index) : index_(index) {}
  constexpr std::size_t index() const { return index_; }
  constexpr auto operator<=>(const Place&) const = default;

 private:
  std::size_t index_ = 0;
};

// The first `count` places, ascending.
template <class P>
auto places(std::size_t count) {
  return std::views::iota(std::size_t{0}, count) | std::views::transform([](std::size_t index) { return P(index); });
}

// A vector with a value for each place, which only its own kind of place can index.
template <class P, class T>
class Per : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  decltype(auto) operator[](P place) { return std::vector<T>::operator[](place.index()); }
  decltype(auto) operator[](P place) const { return std::vector<T>::operator[](place.index()); }
  auto places() const { return tg::places<P>(this->size()); }
  // The first place with this value.
  std::optional<P> place_of(const auto& value) const {
    const auto found = std::ranges::find(*this, value);
    return found == this->end() ? std::nullopt : std::optional(P(static_cast<std::size_t>(found - this->begin())));
  }
  std::vector<P> places_where(auto condition) const {
    std::vector<P> found;
    std::ranges::copy_if(places(), std::back_inserter(found), condition);
    return found;
  }
};

using Seat = Place<struct SeatTag>;
using Rank = Place<struct RankTag>;

}  // namespace tg

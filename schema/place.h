// A node's place in a list. There are two kinds, which never mix, because the list of all nodes and the list of a
// view's members differ.
//
//   Seat   place among all configured names, in the order of names; fixed for a run. Configuration, mesh and control.
//   Rank   place among the members of a view (daemon/membership/view.h). Layout, exchange and step.
#pragma once

#include <compare>
#include <cstddef>
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

// A value for every place: a vector that only its own kind of place can index.
template <class P, class T>
class Per : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  decltype(auto) operator[](P place) { return std::vector<T>::operator[](place.index()); }
  decltype(auto) operator[](P place) const { return std::vector<T>::operator[](place.index()); }
  auto places() const { return tg::places<P>(this->size()); }
};

using Seat = Place<struct SeatTag>;
using Rank = Place<struct RankTag>;

}  // namespace tg

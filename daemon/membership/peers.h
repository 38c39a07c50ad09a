// Peers is the list of nodes as membership sees it: names, this node's seat, connections, weights. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/check.h"
#include "schema/place.h"

namespace tg::daemon {

class Peers {
 public:
  Peers(Per<Seat, std::string> names, Seat self)
      : names_(std::move(names)), self_(self), connected_(names_.size()), weights_(names_.size(), 1) {
    TG_CHECK(knows(self), self.index(), names_.size());
    connected_[self] = true;
  }

  const Per<Seat, std::string>& names() const { return names_; }
  std::size_t size() const { return names_.size(); }
  bool knows(Seat seat) const { return seat.index() < names_.size(); }
  Seat self() const { return self_; }
  bool is_other(Seat seat) const { return knows(seat) && seat != self_; }
  const std::string& name(Seat seat) const { return names_[seat]; }
  const std::string& own_name() const { return names_[self_]; }

  std::optional<Seat> seat_of(const std::string& name) const { return names_.place_of(name); }

  bool connected(Seat peer) const { return connected_[peer]; }
  void set_connected(Seat peer, bool up) { connected_[peer] = up; }
  // The weights of the nodes' shares of a batch.
  const Per<Seat, std::uint16_t>& weights() const { return weights_; }
  void set_weight(Seat seat, std::uint16_t weight) { weights_[seat] = weight; }

  std::vector<Seat> all() const {
    return names_.places_where([](Seat) { return true; });
  }
  std::vector<Seat> others() const {
    return names_.places_where([this](Seat seat) { return seat != self_; });
  }
  std::vector<Seat> disconnected() const {
    return names_.places_where([this](Seat seat) { return !connected_[seat]; });
  }
  // "node-b, node-c"
  std::string names_of(const std::vector<Seat>& seats) const {
    std::string text;
    for (const Seat seat : seats) text += (text.empty() ? "" : ", ") + name(seat);
    return text;
  }

 private:
  Per<Seat, std::string> names_;
  Seat self_;
  Per<Seat, bool> connected_;
  Per<Seat, std::uint16_t> weights_;
};

}  // namespace tg::daemon

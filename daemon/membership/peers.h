// Peers is the list of nodes as membership sees it: names, this node's seat, connections, weights. After those of the
// peer lines come the names that only votes know: nodes that were taken out, which are absent. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/check.h"
#include "schema/frame/view_frames.h"
#include "schema/place.h"

namespace tg::daemon {

class Peers {
 public:
  Peers(Per<Seat, std::string> names, Seat self)
      : names_(std::move(names)),
        self_(self),
        listed_(names_.size()),
        connected_(names_.size()),
        weights_(names_.size(), 1) {
    TG_CHECK(knows(self), self.index(), names_.size());
    connected_[self] = true;
  }
  void add_absent(const std::string& name) {
    names_.push_back(name);
    connected_.push_back(false);
    weights_.push_back(1);
  }

  const Per<Seat, std::string>& names() const { return names_; }
  std::size_t size() const { return names_.size(); }
  bool knows(Seat seat) const { return seat.index() < names_.size(); }
  // The first of the view's members without a peer line here; "" if there is none.
  std::string unknown_in(const schema::NextView& view) const {
    for (const schema::ViewMember& member : view.members)
      if (!seat_of(view.names[member.seat])) return view.names[member.seat];
    return "";
  }
  Seat self() const { return self_; }
  bool is_other(Seat seat) const { return seat.index() < listed_ && seat != self_; }
  const std::string& name(Seat seat) const { return names_[seat]; }
  const std::string& own_name() const { return names_[self_]; }

  // Returns the seat of a node that the peer lines name.
  std::optional<Seat> seat_of(const std::string& name) const {
    const std::optional<Seat> seat = names_.place_of(name);
    return seat && seat->index() < listed_ ? seat : std::nullopt;
  }

  bool connected(Seat peer) const { return connected_[peer]; }
  void set_connected(Seat peer, bool up) { connected_[peer] = up; }
  // The weights of the nodes' shares of a batch.
  const Per<Seat, std::uint16_t>& weights() const { return weights_; }
  void set_weight(Seat seat, std::uint16_t weight) { weights_[seat] = weight; }

  std::vector<Seat> all() const {
    return names_.places_where([this](Seat seat) { return seat.index() < listed_; });
  }
  std::vector<Seat> others() const {
    return names_.places_where([this](Seat seat) { return is_other(seat); });
  }
  std::vector<Seat> disconnected() const {
    return names_.places_where([this](Seat seat) { return !connected_[seat]; });
  }
  // The first by name, on every node the same.
  Seat first_of(const std::vector<Seat>& seats) const {
    return *std::ranges::min_element(seats, {}, [this](Seat seat) { return name(seat); });
  }
  std::vector<std::string> connected_names() const {  // without this node's
    std::vector<std::string> names;
    for (const Seat seat : others())
      if (connected_[seat]) names.push_back(name(seat));
    return names;
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
  std::size_t listed_;  // in the peer lines
  Per<Seat, bool> connected_;
  Per<Seat, std::uint16_t> weights_;
};

}  // namespace tg::daemon

// Peers is the list of nodes as membership sees it: names, this node's seat, connections, weights. Pure, but for the
// list, which grows and shrinks between two calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/check.h"
#include "schema/frame/view_frames.h"
#include "schema/options/node_list.h"
#include "schema/place.h"

namespace tg::daemon {

class Peers {
 public:
  Peers(schema::NodeList nodes, Seat self)
      : nodes_(std::move(nodes)), self_(self), connected_(kMax), weights_(kMax, 1) {
    TG_CHECK(knows(self), self.index(), nodes_.known());
    connected_[self] = true;
  }
  static constexpr std::size_t kMax = schema::NodeList::kMaxNodes;  // tables by seat have as many rows

  void add_absent(const std::string& name) { nodes_.add_absent(name); }

  const schema::NodeList& names() const { return nodes_; }
  bool knows(Seat seat) const { return seat.index() < nodes_.known(); }
  // The first of the view's members without a peer line here; "" if there is none.
  std::string unknown_in(const schema::NextView& view) const {
    for (const schema::ViewMember& member : view.members)
      if (!seat_of(view.names[member.seat])) return view.names[member.seat];
    return "";
  }
  Seat self() const { return self_; }
  bool is_other(Seat seat) const { return nodes_.is_listed(seat) && seat != self_; }
  const std::string& name(Seat seat) const { return nodes_[seat]; }
  const std::string& own_name() const { return nodes_[self_]; }

  // Returns the seat of a node that the peer lines name.
  std::optional<Seat> seat_of(const std::string& name) const { return nodes_.listed(name); }

  bool connected(Seat peer) const { return connected_[peer]; }
  void set_connected(Seat peer, bool up) { connected_[peer] = up; }
  // The weights of the nodes' shares of a batch.
  const Per<Seat, std::uint16_t>& weights() const { return weights_; }
  void set_weight(Seat seat, std::uint16_t weight) { weights_[seat] = weight; }

  std::vector<Seat> all() const { return nodes_.places(); }
  std::vector<Seat> others() const {
    return nodes_.places_where([this](Seat seat) { return seat != self_; });
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
  schema::NodeList nodes_;
  Seat self_;
  Per<Seat, bool> connected_;
  Per<Seat, std::uint16_t> weights_;
};

}  // namespace tg::daemon

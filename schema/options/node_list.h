// The nodes that this process knows: those of its peer lines, which may change while it runs, and those that only votes
// name. A node keeps its Seat for as long as the process lives; one without a peer line is unlisted, as absent as a
// machine that is switched off. Copies share one list. Any thread reads it; the node's thread changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/limits.h"
#include "schema/place.h"

namespace tg::schema {

struct PeerAddress {
  std::string name;
  std::string host;        // a name or an address; an IPv6 one without its brackets
  std::uint16_t port = 0;  // the mesh port; control = port + 1
  std::string place = {};  // what said so: "tgd.conf:3: "; "" = not said
  bool operator==(const PeerAddress&) const = default;
};

class NodeList {
 public:
  static constexpr std::size_t kMaxNodes = 2 * kMaxMembers;  // in the life of a process; what is kept by Seat has room

  NodeList();
  NodeList(const Per<Seat, std::string>& names);  // NOLINT(google-explicit-constructor): listed, without addresses
  NodeList(std::initializer_list<std::string> names) : NodeList(Per<Seat, std::string>(names)) {}
  explicit NodeList(const Per<Seat, PeerAddress>& lines);

  // --- listed nodes ---
  std::size_t size() const { return places().size(); }
  std::vector<Seat> places() const;
  std::vector<Seat> places_where(auto condition) const {
    std::vector<Seat> found = places();
    std::erase_if(found, [&](Seat seat) { return !condition(seat); });
    return found;
  }
  bool is_listed(Seat seat) const;
  std::optional<Seat> listed(const std::string& name) const;
  Per<Seat, PeerAddress> lines() const;  // sorted by name: the order on every node, and no Seat of this one's
  std::vector<std::string> hosts() const;

  // --- all that are known ---
  std::size_t known() const;
  auto all() const { return tg::places<Seat>(known()); }
  std::optional<Seat> place_of(const std::string& name) const;
  const std::string& operator[](Seat seat) const;  // its name; stays where it is
  PeerAddress line(Seat seat) const;               // the last one, without a host if there was none
  std::uint64_t version() const;                   // counts the changes

  // --- the node's thread ---
  // A vote names it. Left out where peer lines would have no room.
  void add_absent(const std::string& name);
  // The peer lines are these from now on. False, and nothing has changed, if there would be more than kMaxNodes.
  bool set_lines(const Per<Seat, PeerAddress>& lines);

 private:
  struct State;
  std::optional<Seat> add(const std::string& name);

  std::shared_ptr<State> state_;
};

// "node-a, node-b": the listed ones.
std::string joined(const NodeList& nodes);

}  // namespace tg::schema

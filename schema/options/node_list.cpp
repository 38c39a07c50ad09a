#include "schema/options/node_list.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "kernels/base/check.h"
#include "schema/text.h"

namespace tg::schema {

struct NodeList::State {
  struct Node {
    std::string name;  // written once, before `count` says that it is there
    std::atomic<bool> listed{false};
    PeerAddress line;  // guarded by mutex
  };
  std::array<Node, kMaxNodes> nodes;
  std::atomic<std::size_t> count{0};
  std::atomic<std::uint64_t> version{0};
  mutable std::mutex mutex;
};

NodeList::NodeList() : state_(std::make_shared<State>()) {}

NodeList::NodeList(const Per<Seat, std::string>& names) : NodeList() {
  for (const std::string& name : names) state_->nodes[add(name).value().index()].listed = true;
}

NodeList::NodeList(const Per<Seat, PeerAddress>& lines) : NodeList() { set_lines(lines); }

std::vector<Seat> NodeList::places() const {
  std::vector<Seat> all;
  for (std::size_t i = 0; i < known(); ++i)
    if (state_->nodes[i].listed) all.emplace_back(i);
  return all;
}

bool NodeList::is_listed(Seat seat) const { return seat.index() < known() && state_->nodes[seat.index()].listed; }

std::optional<Seat> NodeList::listed(const std::string& name) const {
  const std::optional<Seat> seat = place_of(name);
  return seat && is_listed(*seat) ? seat : std::nullopt;
}

Per<Seat, PeerAddress> NodeList::lines() const {
  Per<Seat, PeerAddress> all;
  for (const Seat seat : places()) all.push_back(line(seat));
  std::ranges::sort(all, {}, &PeerAddress::name);
  return all;
}

std::vector<std::string> NodeList::hosts() const {
  std::vector<std::string> all;
  for (const Seat seat : places()) all.push_back(line(seat).host);
  return all;
}

std::size_t NodeList::known() const { return state_->count; }

std::optional<Seat> NodeList::place_of(const std::string& name) const {
  for (std::size_t i = 0; i < known(); ++i)
    if (state_->nodes[i].name == name) return Seat(i);
  return std::nullopt;
}

const std::string& NodeList::operator[](Seat seat) const {
  TG_CHECK(seat.index() < known(), seat.index());
  return state_->nodes[seat.index()].name;
}

PeerAddress NodeList::line(Seat seat) const {
  TG_CHECK(seat.index() < known(), seat.index());
  const std::lock_guard lock(state_->mutex);
  return state_->nodes[seat.index()].line;
}

std::uint64_t NodeList::version() const { return state_->version; }

std::optional<Seat> NodeList::add(const std::string& name) {
  if (const std::optional<Seat> known_already = place_of(name)) return known_already;
  const std::size_t count = state_->count;
  if (count == kMaxNodes) return std::nullopt;
  state_->nodes[count].name = state_->nodes[count].line.name = name;
  state_->count = count + 1;
  return Seat(count);
}

void NodeList::add_absent(const std::string& name) {
  if (known() < kMaxNodes - kMaxMembers) add(name);
}

bool NodeList::set_lines(const Per<Seat, PeerAddress>& lines) {
  const auto is_new = [this](const PeerAddress& line) { return !place_of(line.name); };
  if (known() + static_cast<std::size_t>(std::ranges::count_if(lines, is_new)) > kMaxNodes) return false;
  std::array<bool, kMaxNodes> listed{};
  for (const PeerAddress& line : lines) {
    const std::size_t index = add(line.name).value().index();
    listed[index] = true;
    const std::lock_guard lock(state_->mutex);
    state_->nodes[index].line = line;
  }
  for (std::size_t i = 0; i < known(); ++i) state_->nodes[i].listed = listed[i];
  ++state_->version;
  return true;
}

std::string joined(const NodeList& nodes) {
  std::vector<std::string> names;
  for (const Seat seat : nodes.places()) names.push_back(nodes[seat]);
  return joined(names);
}

}  // namespace tg::schema

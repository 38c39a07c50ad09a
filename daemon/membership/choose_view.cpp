#include "daemon/membership/choose_view.h"

#include <algorithm>
#include <cstdint>

namespace tg::daemon {
namespace {

bool can_go_on(const schema::Promise& promise) {
  return promise.has_state && promise.unfit.empty() && !promise.leaving;
}

bool linked(const View& view, const Promises::value_type& a, const Promises::value_type& b) {
  const auto name = [&view](Seat seat) { return view.names()[view.number_of(seat)]; };
  return reaches(a.second, name(b.first)) && reaches(b.second, name(a.first));
}

// Drops the member that lacks most links until all are linked; of equals the least senior.
void drop_unlinked(const View& view, Promises& members) {
  const std::vector<Seat> order = view.by_seniority();
  const auto missing = [&](const auto& one) {
    return std::ranges::count_if(
        members, [&](const auto& other) { return one.first != other.first && !linked(view, one, other); });
  };
  while (true) {
    auto worst = members.end();
    std::ptrdiff_t most = 0;
    for (const Seat seat : order) {  // among equals the later one is less senior
      const auto one = std::ranges::find(members, seat, &Promises::value_type::first);
      if (one == members.end() || missing(*one) == 0 || missing(*one) < most) continue;
      most = missing(*one);
      worst = one;
    }
    if (worst == members.end()) return;
    members.erase(worst);
  }
}

// "node-a, node-b or node-c"
std::string any_of(const std::vector<Seat>& seats, const Peers& peers) {
  std::string text;
  for (const Seat seat : seats) text += (text.empty() ? "" : seat == seats.back() ? " or " : ", ") + peers.name(seat);
  return text;
}

}  // namespace

bool reaches(const schema::Promise& promise, const std::string& node) {
  return std::ranges::find(promise.reachable, node) != promise.reachable.end();
}

std::optional<schema::NextView> choose_view(const View& view, const Promises& promises, const std::string& why,
                                            const std::optional<ReadyJoiner>& joiner) {
  const schema::Promise* bound = nullptr;
  for (const auto& [seat, promise] : promises)
    if (promise.accepted_in.count > 0 && (bound == nullptr || promise.accepted_in > bound->accepted_in))
      bound = &promise;
  if (bound != nullptr) return bound->accepted;

  schema::NextView next{.number = view.number() + 1, .start = UINT64_MAX, .why = why, .names = view.names()};
  Promises members;
  for (const auto& one : promises) {
    const schema::Promise& promise = one.second;
    next.waits = next.waits || promise.leaving;
    if (!promise.has_state) continue;
    next.start = std::min(next.start, promise.step);
    if (can_go_on(promise)) members.push_back(one);
  }
  drop_unlinked(view, members);
  if (members.empty()) return std::nullopt;
  for (const schema::ViewMember& member : view.members()) {
    const auto one = std::ranges::find(members, *view.member_of(member.seat), &Promises::value_type::first);
    if (one == members.end()) continue;
    next.members.push_back(member);
    next.members.back().vote = one->second.vote;
  }
  const auto takes = [&](const Promises::value_type& one) {
    return one.second.step == joiner->step && reaches(one.second, joiner->name);
  };
  if (!joiner || next.members.size() != view.size() || !std::ranges::all_of(members, takes)) return next;
  schema::ViewMember member = joiner->member;
  member.seat = run_seat(next.names, joiner->name);
  next.members.insert(std::ranges::upper_bound(next.members, member.seat, {}, &schema::ViewMember::seat), member);
  next.why = joiner->name + " joins";
  return next;
}

bool all_linked(const View& view, const Promises& promises) {
  for (const auto& one : promises)
    for (const auto& other : promises)
      if (one.first < other.first && can_go_on(one.second) && can_go_on(other.second) && !linked(view, one, other))
        return false;
  return true;
}

std::string quorum_lost_text(const View& view, const std::vector<Seat>& reachable, const std::vector<Seat>& absent,
                             const Peers& peers) {
  std::vector<Seat> enough;
  for (const Seat seat : absent) {
    std::vector<Seat> with = reachable;
    with.push_back(seat);
    if (is_quorum(view, with)) enough.push_back(seat);
  }
  std::size_t more = 1;  // how many of them
  while (more < absent.size() && 2 * (reachable.size() + more) <= view.size()) ++more;
  const std::string returns = !enough.empty() ? any_of(enough, peers) + " returns"
                                              : std::to_string(more) + " of " + peers.names_of(absent) + " return";
  std::vector<Seat> unlisted = absent;
  std::erase_if(unlisted, [&](Seat seat) { return peers.seat_of(peers.name(seat)).has_value(); });
  return "quorum lost: " + std::to_string(reachable.size()) + " of " + std::to_string(view.size()) +
         (view.size() == 1 ? " voter" : " voters") + " reachable; resumes when " + returns +
         (unlisted.empty()
              ? ""
              : "; no peer line of " + peers.own_name() + " names " + peers.names_of(unlisted) + ": put it back");
}

}  // namespace tg::daemon

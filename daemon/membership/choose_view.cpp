#include "daemon/membership/choose_view.h"

#include <algorithm>
#include <cstdint>

namespace tg::daemon {
namespace {

bool can_go_on(const schema::Promise& promise) { return promise.has_state && promise.unfit.empty() && !promise.leaves; }

bool linked(const Promises::value_type& a, const Promises::value_type& b) {
  return hears(a.second, b.first) && hears(b.second, a.first);
}

// Takes away who lacks most links until all are linked; of equals the least senior.
void drop_unlinked(const View& view, Promises& members) {
  const std::vector<Seat> order = view.by_seniority();
  const auto missing = [&](const auto& one) {
    return std::ranges::count_if(members,
                                 [&](const auto& other) { return one.first != other.first && !linked(one, other); });
  };
  while (true) {
    auto worst = members.end();
    std::ptrdiff_t most = 0;
    for (const Seat seat : order) {  // a later one of equals is less senior
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

bool hears(const schema::Promise& promise, Seat seat) {
  return std::ranges::find(promise.hears, seat.index()) != promise.hears.end();
}

std::optional<schema::NextView> choose_view(const View& view, const Promises& promises, const std::string& why,
                                            const std::optional<Newcomer>& newcomer) {
  const schema::Promise* bound = nullptr;
  for (const auto& [seat, promise] : promises)
    if (promise.accepted_in.count > 0 && (bound == nullptr || promise.accepted_in > bound->accepted_in))
      bound = &promise;
  if (bound != nullptr) return bound->accepted;

  schema::NextView next{.number = view.number() + 1, .start = UINT64_MAX, .why = why};
  Promises members;
  for (const auto& one : promises) {
    const schema::Promise& promise = one.second;
    next.waits = next.waits || promise.leaves;
    if (!promise.has_state) continue;
    next.start = std::min(next.start, promise.step);
    if (can_go_on(promise)) members.push_back(one);
  }
  drop_unlinked(view, members);
  if (members.empty()) return std::nullopt;
  for (const schema::ViewMember& member : view.members())
    if (std::ranges::find(members, Seat(member.seat), &Promises::value_type::first) != members.end())
      next.members.push_back(member);
  const auto takes = [&](const Promises::value_type& one) {
    return one.second.step == newcomer->step && hears(one.second, Seat(newcomer->member.seat));
  };
  if (!newcomer || next.members.size() != view.size() || !std::ranges::all_of(members, takes)) return next;
  next.members.insert(std::ranges::upper_bound(next.members, newcomer->member.seat, {}, &schema::ViewMember::seat),
                      newcomer->member);
  next.why = newcomer->name + " joins";
  return next;
}

bool all_linked(const Promises& promises) {
  for (const auto& one : promises)
    for (const auto& other : promises)
      if (one.first < other.first && can_go_on(one.second) && can_go_on(other.second) && !linked(one, other))
        return false;
  return true;
}

std::string words_of_absence(const View& view, const std::vector<Seat>& away, const Peers& peers) {
  std::vector<Seat> here, enough;
  for (const Seat seat : view.seats())
    if (std::ranges::find(away, seat) == away.end()) here.push_back(seat);
  for (const Seat seat : away) {
    std::vector<Seat> with = here;
    with.push_back(seat);
    if (is_quorum(view, with)) enough.push_back(seat);
  }
  std::size_t more = 1;  // as many of any
  while (2 * (here.size() + more) <= view.size()) ++more;
  const std::string who = !enough.empty() ? any_of(enough, peers) + " is back"
                                          : std::to_string(more) + " of " + peers.names_of(away) + " are back";
  return std::to_string(away.size()) + " of " + std::to_string(view.size()) +
         (view.size() == 1 ? " member " : " members ") + (away.size() == 1 ? "is" : "are") +
         " away; the run goes on as soon as " + who;
}

}  // namespace tg::daemon

#include "tests/simulation/simulator/network.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"

namespace tg::simulation {

Network::Network(const NetworkOptions& options)
    : options_(options),
      random_(options.seed),
      machines_(options.nodes),
      links_(options.nodes * options.nodes),
      pairs_(options.nodes * options.nodes) {}

void Network::attach(Seat seat, Machine* machine) {
  Slot& slot = machines_[seat];
  slot.machine = machine;
  ++slot.incarnation;
  slot.dead = slot.paused = false;
  slot.asleep.clear();
  after(seat, random_.between(0, options_.tick_us), [this, seat] { tick(seat); });
}

void Network::restart(Seat seat, Machine* machine) {
  attach(seat, machine);
  for (const Seat peer : machines_.places()) {
    if (peer == seat) continue;
    if (link(peer, seat).told_up) tell(peer, seat, false);
    lose(peer, seat);
    connect(peer, seat, random_.between(10'000, 500'000));
  }
}

void Network::tick(Seat seat) {
  machines_[seat].machine->on_tick();
  after(seat, options_.tick_us, [this, seat] { tick(seat); });
}

void Network::at(std::uint64_t time_us, std::function<void()> call) {
  events_.push({std::max(time_us, now_us_), sequence_++, std::move(call)});
}

void Network::after(Seat seat, std::uint64_t delay_us, std::function<void()> call) {
  at(now_us_ + delay_us, [this, seat, incarnation = machines_[seat].incarnation, call = std::move(call)] {
    Slot& slot = machines_[seat];
    if (slot.dead || slot.incarnation != incarnation) return;
    if (slot.paused)
      slot.asleep.push_back(call);
    else
      call();
  });
}

// --- frames ---

void Network::send(Seat from, Seat to, SharedMessage message) {
  TG_CHECK(from != to && std::max(from, to).index() < size(), from.index(), to.index());
  if (machines_[from].dead) return;  // it died while it handled something
  if (watch_) message = watch_(from, to, std::move(message));
  if (message == nullptr) return;
  Link& one = link(from, to);
  const Pair& both = pair(from, to);
  if (!both.connected && !both.keeps) return;
  one.waiting.push_back(std::move(message));
  most_waiting_ = std::max(most_waiting_, one.waiting.size());
  if (!both.connected || one.blocked || one.held > 0)
    ++one.held;
  else
    deliver(from, to);
}

// The link's oldest message, when this one would have come: so what was in flight when the link was blocked comes
// before what was sent since.
void Network::deliver(Seat from, Seat to) {
  Link& one = link(from, to);
  one.last_delivery_us = std::max(one.last_delivery_us, now_us_ + delay());
  at(one.last_delivery_us, [this, from, to, epoch = pair(from, to).epoch] { arrive(from, to, epoch); });
}

void Network::arrive(Seat from, Seat to, std::uint64_t epoch) {
  if (pair(from, to).epoch != epoch) return;  // lost
  Link& one = link(from, to);
  if (one.blocked) {
    ++one.held;
    return;
  }
  const SharedMessage message = std::move(one.waiting.front());
  one.waiting.pop_front();
  ++delivered_;
  one.last_heard_us = now_us_;
  Machine* const machine = machines_[to].machine;
  after(to, 0, [machine, from, message] { machine->on_frame(from, message); });
}

void Network::flush(Seat from, Seat to) {
  Link& one = link(from, to);
  if (one.blocked || !pair(from, to).connected) return;
  for (std::size_t i = std::exchange(one.held, 0); i > 0; --i) deliver(from, to);
}

void Network::send_beat(Seat from, Seat to, const schema::Heartbeat& beat) {
  if (link(from, to).blocked || machines_[from].dead) return;
  at(now_us_ + delay(), [this, from, to, beat] {
    if (machines_[to].dead || link(from, to).blocked) return;
    if (!machines_[to].paused) link(from, to).last_heard_us = now_us_;
    Machine* const machine = machines_[to].machine;
    after(to, 0, [machine, from, beat] { machine->on_beat(from, beat); });
  });
}

// --- connections ---

void Network::tell(Seat seat, Seat peer, bool up) {
  if (machines_[seat].dead) return;
  Link& one = link(seat, peer);
  const std::uint64_t time_us = std::max(one.last_told_us, now_us_ + delay());
  one.last_told_us = time_us;
  after(seat, time_us - now_us_, [this, seat, peer, up] {
    if (std::exchange(link(seat, peer).told_up, up) != up) machines_[seat].machine->on_connection(peer, up);
  });
}

void Network::connect(Seat a, Seat b, std::uint64_t delay_us) {
  at(now_us_ + delay_us, [this, a, b] {
    if (machines_[a].dead || machines_[b].dead || pair(a, b).connected) return;
    if (link(a, b).blocked || link(b, a).blocked) return connect(a, b, 100'000);
    pair(a, b).connected = true;
    link(a, b).last_heard_us = link(b, a).last_heard_us = now_us_;
    tell(a, b, true);
    tell(b, a, true);
    flush(a, b);
    flush(b, a);
  });
}

void Network::connect_all() {
  for (const Seat a : machines_.places())
    for (const Seat b : machines_.places() | std::views::drop(a.index() + 1))
      connect(a, b, random_.between(0, 200'000));
}

// What is in flight between the two: none of it arrives, and none of it waits before what is sent later.
void Network::lose(Seat a, Seat b) {
  ++pair(a, b).epoch;
  for (Link* one : {&link(a, b), &link(b, a)}) {
    one->waiting.clear();
    one->held = 0;
  }
}

void Network::disconnect(Seat a, Seat b, bool tell_a, bool tell_b) {
  Pair& both = pair(a, b);
  if (!both.connected) return;
  both.connected = false;
  both.keeps = random_.one_in(2);
  lose(a, b);
  if (tell_a) tell(a, b, false);
  if (tell_b) tell(b, a, false);
}

void Network::break_connection(Seat a, Seat b) {
  disconnect(a, b, true, true);
  connect(a, b, random_.between(100'000, 500'000));
}

void Network::block(Seat from, Seat to, bool on) {
  link(from, to).blocked = on;
  if (!on) flush(from, to);
}

bool Network::linked(Seat a, Seat b) const {
  const auto place = [this](Seat from, Seat to) { return from.index() * size() + to.index(); };
  return pairs_[place(std::min(a, b), std::max(a, b))].connected && !links_[place(a, b)].blocked &&
         !links_[place(b, a)].blocked;
}

bool Network::hear_each_other(Seat a, Seat b, std::uint64_t within_ms) const {
  const auto heard = [&](Seat from, Seat to) {
    return now_us_ - links_[from.index() * size() + to.index()].last_heard_us < within_ms * 1000;
  };
  return pairs_[std::min(a, b).index() * size() + std::max(a, b).index()].connected && heard(a, b) && heard(b, a);
}

void Network::kill(Seat seat, bool silent) {
  Slot& slot = machines_[seat];
  TG_CHECK(!slot.dead, seat.index());
  slot.dead = true;
  slot.asleep.clear();
  for (const Seat peer : machines_.places()) {
    if (peer == seat) continue;
    link(seat, peer).told_up = false;
    if (silent) {
      // What had left the machine still arrives; no peer is told.
      pair(seat, peer).connected = false;
      pair(seat, peer).keeps = false;
    } else {
      disconnect(seat, peer, false, true);
      pair(seat, peer).keeps = false;
    }
  }
}

void Network::pause(Seat seat, bool on) {
  Slot& slot = machines_[seat];
  slot.paused = on;
  if (on) return;
  for (std::function<void()>& call : std::exchange(slot.asleep, {})) after(seat, 0, std::move(call));
}

// --- time ---

bool Network::run_until(const std::function<bool()>& done, std::uint64_t deadline_ms) {
  while (!done()) {
    if (events_.empty() || events_.top().time_us > deadline_ms * 1000) {
      now_us_ = std::max(now_us_, deadline_ms * 1000);
      return false;
    }
    const Event event = std::move(const_cast<Event&>(events_.top()));  // popped at once: the order cannot be disturbed
    events_.pop();
    now_us_ = event.time_us;
    event.call();
  }
  return true;
}

void Network::run_for(std::uint64_t ms) {
  run_until([] { return false; }, now_ms() + ms);
}

}  // namespace tg::simulation

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

void Network::attach(Rank rank, Machine* machine) {
  Slot& slot = machines_[rank];
  slot.machine = machine;
  ++slot.incarnation;
  slot.dead = slot.paused = false;
  slot.asleep.clear();
  after(rank, random_.between(0, options_.tick_us), [this, rank] { tick(rank); });
}

void Network::restart(Rank rank, Machine* machine) {
  attach(rank, machine);
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank) continue;
    if (link(peer, rank).told_up) tell(peer, rank, false);
    ++pair(peer, rank).epoch;
    connect(peer, rank, random_.between(10'000, 500'000));
  }
}

void Network::tick(Rank rank) {
  machines_[rank].machine->on_tick();
  after(rank, options_.tick_us, [this, rank] { tick(rank); });
}

void Network::at(std::uint64_t time_us, std::function<void()> call) {
  events_.push({std::max(time_us, now_us_), sequence_++, std::move(call)});
}

void Network::after(Rank rank, std::uint64_t delay_us, std::function<void()> call) {
  at(now_us_ + delay_us, [this, rank, incarnation = machines_[rank].incarnation, call = std::move(call)] {
    Slot& slot = machines_[rank];
    if (slot.dead || slot.incarnation != incarnation) return;
    if (slot.paused)
      slot.asleep.push_back(call);
    else
      call();
  });
}

// --- frames ---

void Network::send(Rank from, Rank to, SharedMessage message) {
  TG_CHECK(from != to && from < size() && to < size(), from, to);
  Link& one = link(from, to);
  const Pair& both = pair(from, to);
  if (!both.connected && !both.keeps) return;
  ++one.waiting;
  most_waiting_ = std::max(most_waiting_, one.waiting);
  if (!both.connected || one.blocked || !one.kept.empty()) return one.kept.push_back(std::move(message));
  deliver(from, to, std::move(message));
}

void Network::deliver(Rank from, Rank to, SharedMessage message) {
  Link& one = link(from, to);
  one.last_delivery_us = std::max(one.last_delivery_us, now_us_ + delay());
  at(one.last_delivery_us, [this, from, to, epoch = pair(from, to).epoch, message = std::move(message)] {
    arrive(from, to, epoch, message);
  });
}

void Network::arrive(Rank from, Rank to, std::uint64_t epoch, const SharedMessage& message) {
  if (pair(from, to).epoch != epoch) return;  // lost with the connection, counted there
  Link& one = link(from, to);
  if (one.blocked) return one.kept.push_back(message);
  --one.waiting;
  ++delivered_;
  Machine* const machine = machines_[to].machine;
  after(to, 0, [machine, from, message] { machine->on_frame(from, message); });
}

void Network::flush(Rank from, Rank to) {
  Link& one = link(from, to);
  if (one.blocked || !pair(from, to).connected) return;
  for (SharedMessage& message : std::exchange(one.kept, {})) deliver(from, to, std::move(message));
}

void Network::send_beat(Rank from, Rank to, const schema::Beat& beat) {
  if (link(from, to).blocked) return;
  at(now_us_ + delay(), [this, from, to, beat] {
    if (machines_[to].dead || link(from, to).blocked) return;
    Machine* const machine = machines_[to].machine;
    after(to, 0, [machine, from, beat] { machine->on_beat(from, beat); });
  });
}

// --- connections ---

void Network::tell(Rank rank, Rank peer, bool up) {
  if (machines_[rank].dead) return;
  Link& one = link(rank, peer);
  const std::uint64_t time_us = std::max(one.last_told_us, now_us_ + delay());
  one.last_told_us = time_us;
  after(rank, time_us - now_us_, [this, rank, peer, up] {
    if (std::exchange(link(rank, peer).told_up, up) != up) machines_[rank].machine->on_connection(peer, up);
  });
}

void Network::connect(Rank a, Rank b, std::uint64_t delay_us) {
  at(now_us_ + delay_us, [this, a, b] {
    if (machines_[a].dead || machines_[b].dead || pair(a, b).connected) return;
    if (link(a, b).blocked || link(b, a).blocked) return connect(a, b, 100'000);
    pair(a, b).connected = true;
    tell(a, b, true);
    tell(b, a, true);
    flush(a, b);
    flush(b, a);
  });
}

void Network::connect_all() {
  for (Rank a = 0; a < size(); ++a)
    for (Rank b = a + 1; b < size(); ++b) connect(a, b, random_.between(0, 200'000));
}

void Network::disconnect(Rank a, Rank b, bool tell_a, bool tell_b) {
  Pair& both = pair(a, b);
  if (!both.connected) return;
  both.connected = false;
  both.keeps = random_.one_in(2);
  ++both.epoch;
  for (Link* one : {&link(a, b), &link(b, a)}) {
    one->kept.clear();
    one->waiting = 0;
  }
  if (tell_a) tell(a, b, false);
  if (tell_b) tell(b, a, false);
}

void Network::break_connection(Rank a, Rank b) {
  disconnect(a, b, true, true);
  connect(a, b, random_.between(100'000, 500'000));
}

void Network::block(Rank from, Rank to, bool on) {
  link(from, to).blocked = on;
  if (!on) flush(from, to);
}

void Network::kill(Rank rank, bool silent) {
  Slot& slot = machines_[rank];
  TG_CHECK(!slot.dead, rank);
  slot.dead = true;
  slot.asleep.clear();
  for (Rank peer = 0; peer < size(); ++peer) {
    if (peer == rank) continue;
    link(rank, peer).told_up = false;
    if (silent) {
      // What had left the machine still arrives; nobody is told.
      pair(rank, peer).connected = false;
      pair(rank, peer).keeps = false;
    } else {
      disconnect(rank, peer, false, true);
      pair(rank, peer).keeps = false;
    }
  }
}

void Network::pause(Rank rank, bool on) {
  Slot& slot = machines_[rank];
  slot.paused = on;
  if (on) return;
  for (std::function<void()>& call : std::exchange(slot.asleep, {})) after(rank, 0, std::move(call));
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

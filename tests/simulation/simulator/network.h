// A virtual network of N nodes in one thread: virtual time, delays, lost connections, partitions, deaths and pauses,
// all from one seed. The same seed gives the same history.
//
// Data frames travel over one first-in-first-out link per direction, as over ZeroMQ's TCP. A broken connection loses
// what is in flight; what is sent until both ends are connected again is lost or kept, by chance. A blocked direction
// (a partition) keeps frames until it is unblocked and neither end is told. Heartbeats travel beside the links, in any
// order. A paused node receives nothing until it resumes, then everything. Times are microseconds, node clocks
// milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "schema/control/control.h"
#include "schema/frame/frame.h"
#include "schema/place.h"
#include "tests/simulation/simulator/random.h"

namespace tg::simulation {

// One frame, as a value or as the bytes that would go to the socket.
struct Message {
  schema::FrameHeader header;
  schema::FrameBody body;
  schema::SharedFrame bytes;
};
using SharedMessage = std::shared_ptr<const Message>;

// What runs on a virtual machine. Every call happens at the network's present time.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual void on_frame(Seat from, const SharedMessage& message) = 0;
  virtual void on_connection(Seat peer, bool up) = 0;
  virtual void on_beat(Seat from, const schema::Heartbeat& beat) = 0;
  virtual void on_tick() = 0;
};

struct NetworkOptions {
  std::size_t nodes = 1;
  std::uint64_t seed = 1;
  std::uint64_t least_delay_us = 50;
  std::uint64_t most_delay_us = 5'000;
  std::uint64_t tick_us = 100'000;
};

class Network {
 public:
  explicit Network(const NetworkOptions& options);

  // The machine at this seat from now on; a former one is gone with its timers.
  void attach(Seat seat, Machine* machine);
  // The same after a death: its peers notice and connect again.
  void restart(Seat seat, Machine* machine);
  const Machine* machine(Seat seat) const { return machines_[seat].machine; }
  std::uint64_t now_us() const { return now_us_; }
  std::uint64_t now_ms() const { return now_us_ / 1000; }
  Random& random() { return random_; }
  std::uint64_t seed() const { return options_.seed; }
  std::size_t size() const { return machines_.size(); }

  void send(Seat from, Seat to, SharedMessage message);
  // Sees every frame that is sent, and may put another in its place; null: it is not sent.
  using Watch = std::function<SharedMessage(Seat from, Seat to, SharedMessage message)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  void send_beat(Seat from, Seat to, const schema::Heartbeat& beat);
  // A call on a node: it is lost if the node dies, late if the node sleeps.
  void after(Seat seat, std::uint64_t delay_us, std::function<void()> call);
  // A call by the scenario.
  void at(std::uint64_t time_us, std::function<void()> call);

  void connect_all();                       // every pair, each within a random time
  void break_connection(Seat a, Seat b);    // comes back by itself while both live
  void block(Seat from, Seat to, bool on);  // one direction
  void kill(Seat seat, bool silent);        // silent: the machine, so that no connection is closed; else the process
  void pause(Seat seat, bool on);
  bool linked(Seat a, Seat b) const;  // frames come through both ways
  // Something came through in each direction within that time.
  bool hear_each_other(Seat a, Seat b, std::uint64_t within_ms) const;
  bool dead(Seat seat) const { return machines_[seat].dead; }
  bool paused(Seat seat) const { return machines_[seat].paused; }

  // Runs events until `done` or until the virtual deadline; says whether `done` became true.
  bool run_until(const std::function<bool()>& done, std::uint64_t deadline_ms);
  void run_for(std::uint64_t ms);

  std::size_t most_waiting_frames() const { return most_waiting_; }  // on one link, ever
  std::uint64_t delivered() const { return delivered_; }             // frames
  std::uint64_t events() const { return sequence_; }

 private:
  struct Event {
    std::uint64_t time_us, sequence;
    std::function<void()> call;
    bool operator>(const Event& other) const {
      return time_us != other.time_us ? time_us > other.time_us : sequence > other.sequence;
    }
  };
  struct Slot {
    Machine* machine = nullptr;
    std::uint64_t incarnation = 0;
    bool dead = true;
    bool paused = false;
    std::deque<std::function<void()>> asleep;  // what happened to it while it was paused
  };
  struct Link {  // one direction
    std::uint64_t last_delivery_us = 0;
    bool blocked = false;
    bool told_up = false;               // what the sending end knows of the pair
    std::uint64_t last_told_us = 0;     // news of one pair reach an end in order
    std::uint64_t last_heard_us = 0;    // a frame or a heartbeat arrived
    std::deque<SharedMessage> waiting;  // sent and not delivered
    std::size_t held = 0;               // how many of them wait while blocked or not connected
  };
  struct Pair {
    bool connected = false;
    bool keeps = false;  // what is sent while broken
    std::uint64_t epoch = 0;
  };

  Link& link(Seat from, Seat to) { return links_[from.index() * size() + to.index()]; }
  Pair& pair(Seat a, Seat b) { return pairs_[std::min(a, b).index() * size() + std::max(a, b).index()]; }
  std::uint64_t delay() { return random_.between(options_.least_delay_us, options_.most_delay_us); }
  void tick(Seat seat);
  void deliver(Seat from, Seat to);
  void arrive(Seat from, Seat to, std::uint64_t epoch);
  void flush(Seat from, Seat to);
  void connect(Seat a, Seat b, std::uint64_t delay_us);
  void lose(Seat a, Seat b);
  void disconnect(Seat a, Seat b, bool tell_a, bool tell_b);
  void tell(Seat seat, Seat peer, bool up);

  const NetworkOptions options_;
  Watch watch_;
  Random random_;
  std::uint64_t now_us_ = 0;
  std::uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Per<Seat, Slot> machines_;
  std::vector<Link> links_;
  std::vector<Pair> pairs_;
  std::size_t most_waiting_ = 0;
  std::uint64_t delivered_ = 0;
};

}  // namespace tg::simulation

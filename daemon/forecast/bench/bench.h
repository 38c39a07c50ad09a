// A measurement of the asked node: round trips and link while nothing computes, then kernels and compute on a thread of
// its own. Made, told of replies and ticked by the node's thread, which is told the result through `measured`.
//
//   RoundTrips -> LinkProbe -> thread: measure_node -> measured
//
// On destruction the thread is told to stop, which it does between two kernels, and waited for: whoever comes next has
// the processors and the memory to itself. One that does not end within a second is left behind, and says nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "daemon/forecast/bench/node_speed.h"
#include "daemon/mesh/mesh.h"
#include "daemon/mesh/probe/link_probe.h"
#include "daemon/mesh/probe/round_trips.h"
#include "schema/control/forecast.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

class Bench {
 public:
  struct Options {
    Mesh& mesh;
    schema::FramePool& pool;
    NodeUnderTest node;
    schema::BenchReply about;  // what measures, and on how many nodes; the rest is measured
    Seat self;
    std::uint64_t key = 0;                                     // of the frames of this measurement, as a run's
    std::function<void(Result<schema::BenchReply>)> measured;  // once, on the measuring thread; must not block
  };
  explicit Bench(Options options);
  ~Bench();

  std::uint64_t key() const { return options_.key; }
  void on_probe_reply(Seat from, const schema::ProbeReply& reply);
  void tick();

 private:
  struct Listener;
  void send_ping(const RoundTrips::Ping& ping);
  void go_on();
  void start_thread();

  Options options_;
  LinkProbe probe_;
  RoundTrips trips_;
  bool thread_started_ = false;
  std::stop_source stop_;
  std::shared_ptr<Listener> listener_;
};

}  // namespace tg::daemon

// A measurement on the asked node: round trips and link while nothing computes, then codec and compute on a thread of
// its own. Made, told of replies and ticked by the node's thread, which takes the result; while it goes on the node
// refuses other measurements, and a run that begins ends it.
//
//   RoundTrips -> LinkProbe -> thread: measure_node -> Benched event -> take_result
//
// On destruction the thread is told to stop, which it does between two kernels, and waited for: whoever comes next has
// the processors and the memory to itself. One that does not end within a second is left behind, and says nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "daemon/mesh/probe/link_probe.h"
#include "daemon/mesh/probe/round_trips.h"
#include "daemon/run/run.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

class Bench {
 public:
  // key: of the frames of this measurement, as a run's.
  Bench(const RunContext& context, std::uint64_t key, double line_mbps);
  ~Bench();

  std::uint64_t key() const { return key_; }
  void on_probe_reply(Seat from, const schema::ProbeReply& reply);
  void on_measured(Result<schema::BenchReply> result);
  void tick();
  // Once; the reply is saved already, or says that it could not be.
  std::optional<Result<schema::BenchReply>> take_result();

 private:
  struct Listener;
  void send_shot(const RoundTrips::Shot& shot);
  void go_on();
  void start_thread();

  const RunContext& context_;
  const std::uint64_t key_;
  const double line_mbps_;
  LinkProbe probe_;
  RoundTrips trips_;
  bool thread_started_ = false;
  std::stop_source stop_;
  std::shared_ptr<Listener> listener_;
  std::optional<Result<schema::BenchReply>> result_;
};

}  // namespace tg::daemon

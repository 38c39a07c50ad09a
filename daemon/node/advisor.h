// Answers bench and plan on the node: one measurement at a time, and predictions from the last one. A plan that finds
// no measurement of the node as it is now makes one first. Node's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/control/control_server.h"
#include "daemon/forecast/bench/bench.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

class Advisor {
 public:
  Advisor(const RunContext& context, ControlServer& control) : context_(context), control_(control) {}

  // busy: a run is on, or being prepared; nothing can be measured then. key: drawn for the measurement.
  void bench(std::uint64_t token, const schema::BenchRequest& request, std::uint64_t key, bool busy);
  void plan(std::uint64_t token, const schema::ForecastRequest& request, std::uint64_t key, bool busy);

  bool measuring() const { return bench_ != nullptr; }
  void on_probe_reply(std::uint64_t key, Seat from, const schema::ProbeReply& reply);
  void on_benched(Benched& event);
  void tick();
  // A run begins: whoever waits for a measurement is told so.
  void give_way();

 private:
  Result<schema::ForecastReply> forecast(const schema::ForecastRequest& request, const schema::BenchReply& bench,
                                         bool measured_now) const;
  void answer(std::uint64_t token, Result<schema::ForecastReply> reply);

  const RunContext& context_;
  ControlServer& control_;
  std::unique_ptr<Bench> bench_;
  std::uint64_t token_ = 0;                        // who waits for the measurement
  std::optional<schema::ForecastRequest> wanted_;  // a plan of it, not itself
  std::string outdated_;                           // why it is made anew for that plan; empty: there was none
};

}  // namespace tg::daemon

// Answers bench and plan on the node, and foresees its runs: one measurement at a time, and forecasts from the last
// one. Where no measurement of the node as it is now is kept, a plan waits for a new one; a start never waits. A plan
// also waits for a look at the job's data, where only they say what the model will be. Node's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/control/control_server.h"
#include "daemon/forecast/bench/bench.h"
#include "daemon/forecast/bench/bench_file.h"
#include "daemon/forecast/forecast.h"
#include "daemon/node/data_look.h"
#include "daemon/node/event_queue.h"
#include "daemon/run/run_context.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

class Run;

class Advisor {
 public:
  Advisor(const RunContext& context, EventQueue& queue, ControlServer& control)
      : context_(context), queue_(queue), control_(control) {}

  // busy: a run is on, or being prepared; nothing can be measured then. key: drawn for the measurement.
  void bench(std::uint64_t token, std::uint64_t key, bool busy);
  void plan(std::uint64_t token, const schema::ForecastRequest& request, std::uint64_t key, bool busy);
  // A question about this mesh, with the weights that its nodes have told.
  Question weighed(Question question) const;
  // As plan does; answered sooner or later, once.
  using Answer = std::function<void(const Result<Forecast>&)>;
  void foresee(Question question, std::uint64_t key, bool busy, Answer answer);
  // For a run that was prepared here, from what is known now: adds the forecast to the run's facts.
  schema::StartReply foresee(schema::StartReply facts, const Run& run, const schema::Commit& chosen) const;
  static void add(schema::StartReply& facts, const Result<Forecast>& forecast);

  bool measuring() const { return bench_ != nullptr; }
  void on_probe_reply(std::uint64_t key, Seat from, const schema::ProbeReply& reply);
  void on_benched(Benched& event);
  void on_data_seen(DataSeen& event, bool busy);
  void tick(bool busy);
  // A run begins, or the node ends: whoever waits for a measurement is told so.
  void give_way(const std::string& why);

 private:
  using Measured = std::function<void(const Result<schema::BenchReply>&)>;
  schema::BenchReply about() const;  // this node, without what is measured
  KeptBench kept() const;
  void measure(std::uint64_t key, bool busy, Measured measured);

  void answer_plan(std::uint64_t token, Question question, std::uint64_t key, bool busy);

  struct Looking {  // a plan that waits for what its data are
    std::uint64_t token = 0, key = 0;
    Question question;
    std::chrono::steady_clock::time_point until;
    std::unique_ptr<DataLook> look;
  };

  const RunContext& context_;
  EventQueue& queue_;
  ControlServer& control_;
  std::optional<Looking> looking_;
  std::unique_ptr<Bench> bench_;
  Measured measured_;  // who waits for it
};

}  // namespace tg::daemon

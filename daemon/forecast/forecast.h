// How long a step of a job takes: `plan`, `start --dry-run` and the prediction at a start are all answered by
// forecast(). Pure: the node brings the job and what it has measured of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/control/forecast.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

struct Question {
  schema::JobSpec job;
  std::uint64_t nodes = 0;
  double line_mbps = 0;                       // goes before the job's; 0 = as the job says, or as measured
  double cores = 0;                           // of a node; 0 = the asked node's
  bool table = false;                         // also for 1, 2, 4, ... kMaxForecastNodes nodes
  std::optional<schema::Commit> chosen = {};  // by a start; none = what a start would choose
  // Where weights split the batch of that many nodes: samples of the asked node, and everybody's in words. 0 = equal
  // parts.
  std::uint64_t own_samples = 0;
  std::string uneven = {};
  std::optional<engine::ModelOptions> model = {};  // where the data were seen; none = make_task finds it
  std::string data = {};                           // what was seen of them, or why nothing was
};

struct Forecast {
  schema::ForecastReply reply;
  schema::Commit chosen;  // at the asked number of nodes
};

// What is wrong with the question, whatever was measured. More nodes than a run may have are no error: they are
// predicted too.
Status check(const Question& question);

// measured: by `bench`, or assumed_bench; measured_ms == 0 says that it was not measured. An error where check() has
// one, where the measurement is not whole, and where no rate of the link is known.
Result<Forecast> forecast(const Question& question, const schema::BenchReply& measured);

// What stands for a node that has not measured itself: kAssumedCosts, and forward and backward as preparing a run has
// timed them.
schema::BenchReply assumed_bench(const schema::ComputeRate& compute, schema::BenchReply about = {});

}  // namespace tg::daemon

// How long a step of a job takes on a mesh of nodes that are all alike: `plan`, `start --dry-run` and the warning at a
// start ask predict_step(), and the paper's Figure 5 is drawn from it. Pure; any thread.
//
//   link        sends a bucket when backward has it:   w_j = max(w_j-1, ready_j) + bits_j / rate
//   coding      on the threads of the exchange:        c_j = max(c_j-1, ready_j) + kernels_j / speed-up
//   processors  computing, coding and TCP of all of it over the cores
//   step = max(computing, w_last, c_last, processors) + trips that nothing hides
//
// Computing is timed on the node (or told); the constants in forecast.cpp say what coding and TCP take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/control/forecast.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"

namespace tg::daemon {

struct StepQuestion {
  const engine::Model& model;
  const schema::JobSpec& job;
  std::size_t nodes = 1;
  double sample_seconds = 0;  // forward and backward of one sample on a node; 0 where gradients are replayed
  double threads = 1;         // that compute, and that code
  double cores = 1;
  bool on_device = false;         // computes beside the cores
  double payload_mbps = 0;        // as measured; the job's link-mbps goes before it
  double zeros = 0;               // share of zero codes
  std::uint64_t own_samples = 0;  // the asked node's, where weights split the batch of `nodes`; 0 = equal parts
};

// Of a node's link; 0 = not known.
double payload_mbps(const StepQuestion& question);
// What a start on such nodes would choose.
schema::Commit choice_of(const StepQuestion& question);
// With a choice of a start. The link is known, or there is one node.
schema::Outcome predict_step(const StepQuestion& question, const schema::Commit& choice);
// Both exchanges, with the coding that a start would choose.
schema::ForecastRow predict_row(const StepQuestion& question);

// What is wrong with a job for so many nodes.
Status check_plan(const schema::JobSpec& job, std::size_t nodes);
// What `plan` answers: the asked number of nodes, and 1, 2, 4, ... of them. An error where no link is known.
Result<schema::ForecastReply> plan_reply(StepQuestion question);

}  // namespace tg::daemon

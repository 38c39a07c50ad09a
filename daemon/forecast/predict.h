// What `tgctl plan` says: steps, rates and speed-ups of a job on meshes of any size, against a float32 ring. Pure:
// everything about the node comes in Machine.
#pragma once

#include <cstdint>

#include "daemon/forecast/machine.h"
#include "daemon/forecast/step_model.h"
#include "engine/model.h"
#include "schema/options/job.h"

namespace tg::daemon {

// Share of a line's rate that TCP payload gets: 1448 bytes of every 1538 with frame gaps, headers and time stamps.
inline constexpr double kPayloadShare = 1448.0 / 1538;

// A job that can be predicted: its model is known, and computes if it is to be trained.
struct Task {
  engine::Model model;
  schema::JobSpec job;
};
Result<Task> make_task(const schema::JobSpec& job);

// What a start of the job would choose on such a mesh: choose_exchange of the votes of nodes that are all like this
// one. A vote is of kernels and link alone, so neither a calibration nor nodes that share cores change it. In a start
// every node measures anew, so near a tie it may choose otherwise.
schema::Commit choose_as_start(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);

// With the coding that a start would choose for this exchange, direct or sharded.
schema::Outcome predict(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                        schema::ExchangeKind exchange);
schema::Outcome predict_ring(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);
schema::ForecastRow predict_row(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);

// The table over N = 1, 2, 4, ... kMostPlannedNodes, where the ring overtakes, what a start chooses, what is assumed.
// Fills everything of the reply that does not come from the node or the request's words.
void predict_all(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                 schema::ForecastReply& reply);

// For calibrations: the step of one exchange and coding, with the chunks and the window that a start takes on this
// link.
StepModel model_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                   const schema::Commit& choice);

}  // namespace tg::daemon

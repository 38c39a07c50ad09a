// What `tgctl plan` says: steps, rates and speed-ups of a job on meshes of any size, against a float32 ring. Pure:
// everything about the node comes in Machine.
#pragma once

#include <cstdint>

#include "daemon/plan/machine.h"
#include "daemon/plan/step_model.h"
#include "engine/model.h"
#include "schema/job.h"

namespace tg::daemon {

// Share of a line's rate that TCP payload gets: 1448 bytes of every 1538 with frame gaps, headers and time stamps.
inline constexpr double kPayloadShare = 1448.0 / 1538;

// A job that can be predicted: its model is known, and computes if it is to be trained.
struct Task {
  engine::Model model;
  schema::JobSpec job;
};
Result<Task> make_task(const schema::JobSpec& job);

// The better coding of the allowed ones; exchange is direct or sharded.
schema::Outcome predict(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                        schema::ExchangeKind exchange);
schema::Outcome predict_ring(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);
schema::ForecastRow predict_row(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);

// The table over N = 1, 2, 4, ... kMostPlannedNodes, where the ring overtakes, what auto chooses, and what is assumed.
// Fills everything of the reply that does not come from the node or the request's words.
void predict_all(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                 schema::ForecastReply& reply);

// For calibrations: the step of one exchange and coding.
StepModel model_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                   const schema::Commit& choice);

}  // namespace tg::daemon

// Steps of a job on a mesh of some size, by the step model: tgd's two exchanges and a float32 ring. Pure: everything
// about the node comes in Machine. forecast.h asks this; nobody else does.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/forecast/machine.h"
#include "daemon/forecast/step_model.h"
#include "engine/model.h"
#include "schema/options/job.h"

namespace tg::daemon {

// A job that can be predicted: its model is known, and computes if it is to be trained.
struct Task {
  engine::Model model;
  schema::JobSpec job;
  // Samples of this node among so many, where weights split the batch.
  std::size_t weighted_nodes = 0;
  std::uint64_t own_samples = 0;
};
// known: the model of data that were loaded; none = of what such data usually are, and as published where it would not
// take them.
Result<Task> make_task(const schema::JobSpec& job, const std::optional<engine::ModelOptions>& known = {});

// What a start of the job would choose on such a mesh: choose_exchange of the votes of nodes that are all like this
// one.
schema::Commit choose_as_start(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);

// The step of one exchange and coding, with the chunks and the window that a start takes on this link.
StepModel model_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                   schema::ExchangeKind exchange, schema::Coding coding);
schema::Outcome predict(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                        schema::ExchangeKind exchange, schema::Coding coding);
schema::Outcome predict_ring(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes);
// All three, with their speed-ups over one node.
schema::ForecastRow predict_row(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                                schema::Coding coding);

}  // namespace tg::daemon

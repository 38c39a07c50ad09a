// What other threads tell a run's member: the compute thread and the helpers of the exchange. Values, handed to
// Member::on_event by the thread that owns it. Each says of which order or task it is, since an order may be abandoned
// while its results are on their way: a member drops what is of another view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "daemon/step/worker.h"
#include "engine/engine.h"
#include "schema/step.h"

namespace tg::daemon {

struct Origin {
  std::uint32_t view = 0;
  Step step;  // a task: the one whose gradient is exchanged
};

struct GradientReady {  // backward has this bucket
  Origin of;
  std::size_t bucket = 0;
  double loss_sum = 0;  // over this member's samples
  // With the first bucket: what batch normalizations measured on them, without padding.
  std::vector<float> statistics = {};
  // With the last bucket: what the step's two passes took, waits for parameters aside.
  double forward_seconds = 0, backward_seconds = 0;
  double data_seconds = 0;  // with the last bucket as well: the wait for the step's samples, before its forward
};
struct Evaluated {
  Origin of;
  engine::EvaluationCounts counts;
};
struct EngineFailed {  // or a tensor kernel; nothing more comes from it
  Origin of;
  std::string message;
};
struct TotalMade {  // by a Reduce in flight
  Origin of;
  MadeFrame total;
};
struct TaskDone {
  Origin of;
  Task task;
  TaskResult result;
};
using StepEvent = std::variant<GradientReady, TotalMade, TaskDone, Evaluated, EngineFailed>;

}  // namespace tg::daemon

#include "tests/forecast/samples.h"

namespace tg::daemon {
namespace {

Task task_of(const schema::JobSpec& job) {
  Result<Task> task = make_task(job);
  TG_CHECK(task.ok());
  return std::move(task).value();
}

}  // namespace

Machine sample_machine(double cores) {
  Machine machine;
  for (const KernelCost& kernel : kKernelCosts) *kernel.field(machine.kernels) = 1e-9;
  machine.compute = {{"lenet", 64, 1e-3, 10}, {"cifarnet", 128, 2e-3, 10}};
  machine.cores = cores;
  machine.threads = cores;
  machine.trip_seconds = 100e-6;
  // On more cores the same work takes less.
  for (schema::ComputeRate& rate : machine.compute) rate.seconds_per_sample /= cores;
  return machine;
}

Task replay_task(ModelKind model, schema::GradientFormat last_layer) {
  schema::JobSpec job;
  job.model = model;
  job.last_layer = last_layer;
  job.compute = schema::Compute::kReplay;
  return task_of(job);
}

Task train_task(ModelKind model, std::uint64_t global_batch) {
  schema::JobSpec job;
  job.model = model;
  job.global_batch = global_batch;
  return task_of(job);
}

}  // namespace tg::daemon

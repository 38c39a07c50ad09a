// What a run's status and record say at its beginning, of a run of the mesh and of one that is simulated alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/step/threads/trainer.h"
#include "daemon/store/run_record.h"
#include "engine/compute_device.h"
#include "kernels/kernels.h"
#include "schema/options/job.h"

namespace tg::daemon {

struct Beginning {
  const schema::JobSpec& job;  // as it was prepared: its steps are those of its epochs
  const Prepared& prepared;
  std::uint64_t global_batch = 0;
  std::string exchange, coding;
};
// Fills status with what does not depend on what came before. Reads the clock.
void show_beginning(const Beginning& beginning, schema::RunStatus& status);

// spec: the canonical job. status: filled already. own: whose record it is; nodes: all, by seat; the members are
// those of the first view. The key, the view and the builds are the caller's.
RunRecord first_record(const Beginning& beginning, const std::string& spec, const schema::RunStatus& status,
                       MemberRecord own, std::vector<std::string> nodes, std::vector<std::string> members,
                       std::vector<std::uint16_t> weights);
MemberRecord member_record(const std::string& node, const Prepared& prepared, const PreparedView& view,
                           const kernels::Kernels& kernels, const engine::ComputeDevice& compute);

}  // namespace tg::daemon

// A run's status and record at its beginning, for a run of the mesh and for a simulated one.
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

struct RunBeginning {
  const schema::JobSpec& job;  // prepared: its steps are set
  const Prepared& prepared;
  std::uint64_t global_batch = 0;
  std::string exchange, coding;
};
// Fills the fields of status that do not depend on an earlier lineage. Reads the clock.
void fill_first_status(const RunBeginning& beginning, schema::RunStatus& status);

// spec: the canonical job. status: already filled. own: this node's row. nodes: by seat in the run. members: the first
// view's. The caller adds the key, the view and the builds.
RunRecord first_record(const RunBeginning& beginning, const std::string& spec, const schema::RunStatus& status,
                       MemberRecord own, std::vector<std::string> nodes, std::vector<std::string> members,
                       std::vector<std::uint16_t> weights);
MemberRecord member_record(const std::string& node, const Prepared& prepared, const PreparedView& view,
                           const kernels::Kernels& kernels, const engine::ComputeDevice& compute);

}  // namespace tg::daemon

// A node's checks of its own machine: keys, disk, memory, open files, engine, data sets.
#pragma once

#include <cstdint>

#include "daemon/doctor/report.h"
#include "engine/compute_device.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

// On a thread of its own: a disk may hang. Notes each as it is found, and says node_checks_done() at the end. threads:
// of the node's engine. busy: what would disturb a run (engine, data sets) is left out, and so is the memory that it
// takes.
void check_node(const schema::NodeConfig& config, const engine::ComputeDevice& compute, std::uint64_t threads,
                bool busy, Report& report);

// What a run of LeNet writes: two checkpoints and a third that is being written, then the last
// state, the model and the raw model.
std::uint64_t usual_run_disk_bytes();
// A forward and a backward pass of LeNet over fixed samples, and every variant of the kernels beside the scalar one:
// what was tested, with driver and libraries of a device. The error says which result is wrong.
Result<std::string> test_engine(const engine::ComputeDevice& compute);

}  // namespace tg::daemon

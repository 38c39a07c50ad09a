// A node's checks of its own machine: keys, memory, threads, disk, data sets.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/doctor/examination_progress.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

// On a thread of its own: a disk may hang. Notes each as it is found, and calls end_node_checks(). threads: of a run on
// this node. busy: memory, threads and data sets are not checked, which would disturb a run.
void check_node(const schema::NodeConfig& config, std::uint64_t threads, bool busy, ExaminationProgress& progress);

// "" if that many threads can be started, else the problem and the next step.
std::string thread_problem(std::uint64_t threads);

}  // namespace tg::daemon

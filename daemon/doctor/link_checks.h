// Checks the way to every peer: does its name resolve, do both its ports answer at any of its addresses, how large is a
// packet. Plain sockets
// beside those of the node connect, read the first byte that ZeroMQ sends (ZMTP 3.1: 0xff) and close.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "daemon/doctor/examination_progress.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxLinkThreads = 32;  // each holds one descriptor at a time

// Starts threads of its own and returns at once: progress has a link for every peer line, in the order of seats, and
// end_link_check() follows for each of them. No attempt begins after the deadline. A name server that never answers
// keeps its threads, which hold the progress. Throws std::system_error if a thread cannot be started.
void check_links(const schema::NodeConfig& config, std::chrono::steady_clock::time_point deadline,
                 const std::shared_ptr<ExaminationProgress>& progress);

}  // namespace tg::daemon

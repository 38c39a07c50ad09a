// The way to every peer: does its name resolve, can both its ports be connected to, how long is a round trip, how large
// a packet. Plain sockets beside those of the node, which connect, read the first byte that ZeroMQ says (ZMTP 3.1:
// 0xff) and close; at most kMaxAttempts at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "daemon/doctor/report.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

inline constexpr std::size_t kMaxAttempts = 32;  // descriptors that an examination takes for a moment

// On a thread of its own; returns by the deadline, and says links_done(). The report has a link for every peer line, in
// the order of seats. A resolver that never answers keeps a thread, which holds the report. May throw
// std::system_error.
void check_links(const schema::NodeConfig& config, std::chrono::steady_clock::time_point deadline,
                 const std::shared_ptr<Report>& report);

}  // namespace tg::daemon

// Assigns peers to libzmq's I/O threads, for the mesh port and the control port alike. Pure; any thread.
#pragma once

#include <cstdint>

#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

// libzmq resolves names on the I/O thread that reconnects, and a resolver may take seconds to report that a dead peer's
// name is gone. So each peer given by name has an I/O thread apart from the others; the port has the first.
struct IoThreads {
  int count = 1;
  Per<Seat, std::uint64_t> by_peer;  // SocketOptions::io_threads
};
IoThreads io_threads_of(const schema::NodeConfig& config);

}  // namespace tg::daemon

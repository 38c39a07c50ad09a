// Which of libzmq's I/O threads serves which peer, at the mesh port and at the control port alike. Pure; any thread.
#pragma once

#include <cstdint>

#include "schema/options/node_config.h"
#include "schema/place.h"

namespace tg::daemon {

// libzmq resolves names on the I/O thread that reconnects, and a resolver may take seconds to say that a dead peer's
// name is gone. So a peer given by name gets an I/O thread away from the others'; the port has the first.
struct IoThreads {
  int count = 1;
  Per<Seat, std::uint64_t> of_peers;  // SocketOptions::io_threads
};
IoThreads io_threads_of(const schema::NodeConfig& config);

}  // namespace tg::daemon

// What both halves of the mesh do with ZeroMQ in the same way.
#pragma once

#include <cstdint>
#include <zmq.hpp>

#include "daemon/access/socket_options.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

SocketOptions mesh_options(const schema::NodeConfig& config);

// Without a copy: ZeroMQ releases the frame on a thread of its own, when it has gone out.
zmq::message_t message_of(const schema::SharedFrame& frame);

// What a message of so many bytes takes on the wire.
std::uint64_t wire_bytes(std::size_t size);

}  // namespace tg::daemon

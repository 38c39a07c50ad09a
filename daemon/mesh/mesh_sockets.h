// ZeroMQ functions shared by both halves of the mesh.
#pragma once

#include <cstdint>
#include <zmq.hpp>

#include "daemon/access/socket_options.h"
#include "schema/frame/frame.h"
#include "schema/options/node_config.h"

namespace tg::daemon {

SocketOptions mesh_options(const schema::NodeConfig& config);

// Does not copy: ZeroMQ releases the frame on one of its own threads once it has been sent.
zmq::message_t message_of(const schema::SharedFrame& frame);

// The size of a message on the wire.
std::uint64_t wire_bytes(std::size_t size);

}  // namespace tg::daemon

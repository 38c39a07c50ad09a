#include "daemon/mesh/mesh_sockets.h"

#include "schema/limits.h"

namespace tg::daemon {
namespace {

void release_frame(void*, void* hint) { delete static_cast<schema::SharedFrame*>(hint); }

}  // namespace

SocketOptions mesh_options(const schema::NodeConfig& config) {
  SocketOptions options;
  options.high_water_mark = schema::kMeshHighWaterMark;
  options.received_messages = schema::kMaxReceivedFrames;
  options.max_message_bytes = schema::kMaxFrameBytes;
  options.give_up_ms = config.peer_timeout_ms;
  return options;
}

zmq::message_t message_of(const schema::SharedFrame& frame) {
  const std::span<const std::byte> bytes = frame->bytes();
  auto* keep = new schema::SharedFrame(frame);
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), release_frame, keep};
}

// ZMTP 3.1: a flags byte, then the size in 1 byte, or in 8 bytes if it is above 255.
std::uint64_t wire_bytes(std::size_t size) { return size + (size > 255 ? schema::kMessageHeadBytes : 2); }

}  // namespace tg::daemon

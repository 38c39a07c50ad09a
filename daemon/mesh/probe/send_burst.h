// Sends a burst of LinkProbe as frames, round robin to all other members.
#pragma once

#include <cstdint>

#include "daemon/mesh/mesh.h"
#include "daemon/mesh/probe/link_probe.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// Called on the node's thread. key: that of the run or measurement.
void send_burst(Mesh& mesh, schema::FramePool& pool, std::uint64_t key, const LinkProbe::Burst& burst);

}  // namespace tg::daemon

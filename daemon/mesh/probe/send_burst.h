// A burst of LinkProbe as frames, to all other members in turn.
#pragma once

#include <cstdint>

#include "daemon/mesh/mesh.h"
#include "daemon/mesh/probe/link_probe.h"
#include "schema/frame/frame.h"

namespace tg::daemon {

// On the node's thread. key: of the run or measurement that the burst belongs to.
void send_burst(Mesh& mesh, schema::FramePool& pool, std::uint64_t key, const LinkProbe::Burst& burst);

}  // namespace tg::daemon

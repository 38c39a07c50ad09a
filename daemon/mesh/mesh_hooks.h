// The callbacks by which the mesh reports to its owner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// All run on the receiving thread and may block while the node's queue is full (TCP then holds the peers back).
struct MeshHooks {
  std::function<void(Seat, schema::Frame, std::shared_ptr<const void> keep)> on_frame;
  std::function<void(Seat, bool up)> on_connection_changed;
  std::function<void(Seat, std::string what)> on_misbehaved;  // a restart, or malformed frames
  std::function<void(Seat)> on_traffic;                       // any valid bytes
};

}  // namespace tg::daemon

// The mesh's reports to its owner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "schema/frame/frame.h"
#include "schema/place.h"

namespace tg::daemon {

// Called on the receiving thread; may block while the node's queue is full (ZeroMQ and TCP then hold the peers back).
struct MeshHooks {
  std::function<void(Seat, schema::Frame, std::shared_ptr<const void> keep)> frame;
  std::function<void(Seat, bool up)> connection;
  std::function<void(Seat, std::string what)> misbehaved;  // restarted in the middle, malformed frames
  std::function<void(Seat)> heard;                         // any valid bytes
};

}  // namespace tg::daemon

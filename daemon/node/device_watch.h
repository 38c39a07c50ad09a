// Asks the node's device for its memory once a second, on a thread of its own: a device that hangs keeps nobody else
// waiting, and everybody can say so. Without a device it has no thread. The thread is left behind.
#pragma once

#include <memory>

#include "engine/compute_device.h"
#include "schema/control/control.h"

namespace tg::daemon {

class DeviceWatch {
 public:
  // compute lives as long as the process.
  explicit DeviceWatch(const engine::ComputeDevice& compute);

  schema::ComputeStatus status() const;  // any thread; does not wait for the device

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tg::daemon

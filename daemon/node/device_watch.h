// Polls the memory of the node's device once a second, on its own thread: a device that hangs makes nothing else wait,
// and its state can still be reported. Without a device there is no thread. The thread is not joined at the end.
#pragma once

#include <memory>

#include "engine/compute_device.h"
#include "schema/control/control.h"

namespace tg::daemon {

class DeviceWatch {
 public:
  // compute outlives the process's threads.
  explicit DeviceWatch(const engine::ComputeDevice& compute);

  schema::ComputeStatus status() const;  // any thread; does not wait for the device

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tg::daemon

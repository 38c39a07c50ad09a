#include "daemon/node/device_watch.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPollInterval{1}, kMaxSilence{10};

}  // namespace

struct DeviceWatch::State {
  std::mutex mutex;  // guards the other members
  schema::ComputeStatus status;
  Clock::time_point answered = Clock::now();

  void poll(const engine::ComputeDevice& compute) {
    engine::DeviceMemory memory;
    std::string problem;
    try {
      memory = compute.memory();
    } catch (const std::exception& error) {
      problem =
          std::string("the device does not answer: ") + error.what() + "; look at it with nvidia-smi, then restart tgd";
    }
    const std::lock_guard lock(mutex);
    answered = Clock::now();
    status.problem = problem;
    status.free_bytes = memory.free;
    status.total_bytes = memory.total;
  }
};

DeviceWatch::DeviceWatch(const engine::ComputeDevice& compute) : state_(std::make_shared<State>()) {
  schema::ComputeStatus& status = state_->status;
  status.engine = to_word(compute.engine());
  status.device = compute.name();
  status.math = to_word(compute.math());
  status.why_cpu = compute.why_not();
  status.module_missing = compute.module_missing();
  if (compute.accelerator() == nullptr) return;
  state_->poll(compute);
  std::thread([&compute, state = state_] {
    for (;; std::this_thread::sleep_for(kPollInterval)) state->poll(compute);
  }).detach();
}

schema::ComputeStatus DeviceWatch::status() const {
  const std::lock_guard lock(state_->mutex);
  schema::ComputeStatus status = state_->status;
  const auto silence = Clock::now() - state_->answered;
  if (!status.device.empty() && silence > kMaxSilence)
    status.problem = "the device has not answered for " +
                     std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silence).count()) +
                     " s; look at it with nvidia-smi, then restart tgd";
  return status;
}

}  // namespace tg::daemon

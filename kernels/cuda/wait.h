// The one place where the host waits for a device. It polls and yields the processor in between: 9 us from the device's
// end until the caller goes on, where a blocking wait takes 46. No wait lasts for ever: after its patience it throws
// DeviceLost (check.h)
//
//   device 0 (NVIDIA H100 80GB HBM3) did not answer for 30 s in ternarize; look at nvidia-smi, and restart tgd
//
// and the device counts as hung for the rest of the process: other waits for it end at once, and memory is not freed
// if that would wait in the driver. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>

namespace tg::kernels::cuda {

// For a call that takes milliseconds and waits for nothing but its turn between other kernels.
inline constexpr std::chrono::seconds kCallPatience{30};
// For a network's pass over its batch, or a part of it: minutes on a small device.
inline constexpr std::chrono::seconds kPassPatience{300};

// The deadline of one wait; the time starts when the object is made.
class Deadline {
 public:
  // call: the name in the error; it must outlive the object.
  Deadline(std::chrono::seconds patience, const char* call);
  // Called between two polls: yields the processor. Throws once the time is over.
  void go_on() const;

 private:
  const std::chrono::seconds patience_;
  const char* const call_;
  const std::chrono::steady_clock::time_point end_;
};

// Whether the work before the event, or all work queued on the stream, is done. Does not wait.
bool is_done(cudaEvent_t event);
bool is_done(cudaStream_t stream);

// Returns once is_done() is true.
template <class Handle>
void wait_for(Handle handle, std::chrono::seconds patience, const char* call) {
  const Deadline deadline(patience, call);
  while (!is_done(handle)) deadline.go_on();
}

// Whether a wait of this process has timed out.
bool has_hung();

}  // namespace tg::kernels::cuda

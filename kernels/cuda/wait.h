// The one place where the host waits for a device. It asks again and again and offers the processor to others between:
// 9 us from the device's end to the caller's going on, where a blocking wait takes 46. No wait is for ever: after its
// patience it throws std::runtime_error
//
//   device 0 (NVIDIA H100 80GB HBM3) did not answer for 30 s in ternarize; look at nvidia-smi, and restart tgd
//
// and the device counts as hung for the rest of the process: other waits for it end at once, and nothing that would
// wait in the driver is given back. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>

namespace tg::kernels::cuda {

// Of a call that takes milliseconds, and waits for its turn between others' kernels at most.
inline constexpr std::chrono::seconds kCallPatience{30};
// Of a pass of a network over its batch, or a part of it: minutes on a small device.
inline constexpr std::chrono::seconds kPassPatience{300};

// Of one wait; begins when it is made.
class Deadline {
 public:
  // call: for the error; it outlives the object.
  Deadline(std::chrono::seconds patience, const char* call);
  // Between two looks: offers the processor to others. Throws once the time is over.
  void go_on() const;

 private:
  const std::chrono::seconds patience_;
  const char* const call_;
  const std::chrono::steady_clock::time_point end_;
};

// Whether what the event stands for, or all that was queued on the stream, is done: asks, and does not wait.
bool is_done(cudaEvent_t event);
bool is_done(cudaStream_t stream);

// Returns once it is.
template <class Handle>
void wait_for(Handle handle, std::chrono::seconds patience, const char* call) {
  const Deadline deadline(patience, call);
  while (!is_done(handle)) deadline.go_on();
}

// Whether a wait of this process was in vain.
bool has_hung();

}  // namespace tg::kernels::cuda

// The one form of calls to the CUDA runtime: TG_CUDA(cudaEventRecord(event, stream)) throws std::runtime_error
// "cudaEventRecord: <text of cudaGetErrorString> (device 0)" if the call fails, with the next action if the device is
// lost to this process. Memory that cannot be had is OutOfMemory (memory.h). Libraries on top of it have forms of
// their own. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace tg::kernels::cuda {

// Nothing works on the device until the process is restarted; the text says so.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// call: the text of the call; its name is what precedes the first parenthesis.
void require_success(cudaError_t result, std::string_view call);

// Throws DeviceLost with what happened, the calling thread's device, and the next action.
[[noreturn]] void fail_on_device(const std::string& what);

}  // namespace tg::kernels::cuda

#define TG_CUDA(call) ::tg::kernels::cuda::require_success((call), #call)

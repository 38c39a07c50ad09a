#include "kernels/cuda/check.h"

#include <stdexcept>

#include "kernels/cuda/memory.h"

namespace tg::kernels::cuda {
namespace {

// " (device 0)", the calling thread's device.
std::string named_device() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? " (device " + std::to_string(device) + ")" : "";
}

// After one of these errors nothing works on the device until the process is restarted.
bool is_final(cudaError_t result) {
  switch (result) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

void require_success(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which the check after the next launch would find otherwise
  const std::string what = std::string(call.substr(0, call.find('('))) + ": " + cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) throw OutOfMemory(what + named_device());
  if (is_final(result)) fail_on_device(what);
  throw std::runtime_error(what + named_device());
}

void fail_on_device(const std::string& what) {
  throw DeviceLost(what + named_device() +
                   "; restart tgd; if it happens again, nvidia-smi and the system's log (Xid) point to a device "
                   "that is failing, compute-sanitizer to a kernel that is wrong");
}

}  // namespace tg::kernels::cuda

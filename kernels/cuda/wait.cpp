#include "kernels/cuda/wait.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernels/cuda/check.h"

namespace tg::kernels::cuda {
namespace {

std::atomic<bool> hung = false;

// False while the work is not done.
bool is_ready(cudaError_t result, const char* call) {
  if (result == cudaErrorNotReady) {
    cudaGetLastError();  // clears the error, which the check after the next launch would find otherwise
    return false;
  }
  require_success(result, call);
  return true;
}

std::string current_device() {
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess) return "the device";
  const bool named = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  return "device " + std::to_string(device) + (named ? " (" + std::string(properties.name) + ")" : "");
}

}  // namespace

Deadline::Deadline(std::chrono::seconds patience, const char* call)
    : patience_(patience), call_(call), end_(std::chrono::steady_clock::now() + patience) {}

void Deadline::go_on() const {
  if (!hung && std::chrono::steady_clock::now() < end_) {
    std::this_thread::yield();
    return;
  }
  hung = true;
  throw DeviceLost(current_device() + " did not answer for " + std::to_string(patience_.count()) + " s in " + call_ +
                   "; look at nvidia-smi, and restart tgd");
}

bool is_done(cudaEvent_t event) { return is_ready(cudaEventQuery(event), "cudaEventQuery"); }
bool is_done(cudaStream_t stream) { return is_ready(cudaStreamQuery(stream), "cudaStreamQuery"); }

bool has_hung() { return hung; }

}  // namespace tg::kernels::cuda

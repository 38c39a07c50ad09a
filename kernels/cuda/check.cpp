#include "kernels/cuda/check.h"

#include <stdexcept>
#include <string>

namespace tg::kernels::cuda {

void require_success(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // or the check after the next kernel's launch would find it
  throw std::runtime_error(std::string(call.substr(0, call.find('('))) + ": " + cudaGetErrorString(result));
}

}  // namespace tg::kernels::cuda

// The one form of calls to cuDNN and cuBLASLt, and what every stage needs of them: TG_CUDNN(call) and TG_CUBLAS(call)
// throw std::runtime_error naming the call, or OutOfMemory, as TG_CUDA (kernels/cuda/check.h) does for the runtime.
//
// A Library owns a device's handles and streams for one engine. Everything is computed on one stream, so that the calls
// run one after another and share one workspace; the batch comes on a second one. Handles are for one thread at a time.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/accelerator.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/wait.h"

namespace tg::engine::cuda {

// call: the text of the call; its name is what precedes the first parenthesis.
void require_success(cudnnStatus_t result, std::string_view call);
void require_success(cublasStatus_t result, std::string_view call);

// Returns once the work before the event is done, a pass over a batch at most (wait.h).
inline void wait_for(cudaEvent_t event) {
  kernels::cuda::wait_for(event, kernels::cuda::kPassPatience, "a pass over a batch");
}

// Releases what a library's create function made, unless that would wait for a device that has hung.
template <auto kDestroy>
struct Destroyer {
  template <class Handle>
  void operator()(Handle* handle) const {
    if (!kernels::cuda::has_hung()) kDestroy(handle);
  }
};
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<kDestroy>>;

using TensorDescriptor = Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatrixProduct = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// Describes float32 images, stored NCHW.
TensorDescriptor make_tensor(int samples, const ImageShape& shape);

class Library {
 public:
  // Throws std::runtime_error naming the failing call.
  Library(int device, Math math);

  // Makes the device the calling thread's current one, which the runtime keeps per thread; any thread may call.
  void claim() const;

  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }
  cudaStream_t compute() const { return compute_.get(); }
  cudaStream_t copy() const { return copy_.get(); }

  // Strict float32 must be requested on every descriptor: cuDNN's default lets factors lose 13 bits.
  Math math() const { return math_; }
  cudnnMathType_t convolution_math() const;
  cublasComputeType_t product_math() const;

  // Returns once all work on compute() is done.
  void wait();

  // Scratch memory for one call at a time, on compute(). Allocated once all needs are known; while algorithms are
  // tried, as much as the trials need.
  void take_workspace(std::size_t bytes);
  void* workspace() const { return workspace_.data(); }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  const int device_;
  const Math math_;
  kernels::cuda::Stream compute_, copy_;
  kernels::cuda::Event done_;
  Owned<cudnnHandle_t, cudnnDestroy> cudnn_;
  Owned<cublasLtHandle_t, cublasLtDestroy> cublas_;
  kernels::cuda::DeviceBytes workspace_;
  std::size_t workspace_bytes_ = 0;
};

// The versions found: "CUDA 13.0, driver 13.0, cuDNN 9.14.0, cuBLAS 13.1.0".
std::string library_versions();

}  // namespace tg::engine::cuda

#define TG_CUDNN(call) ::tg::engine::cuda::require_success((call), #call)
#define TG_CUBLAS(call) ::tg::engine::cuda::require_success((call), #call)

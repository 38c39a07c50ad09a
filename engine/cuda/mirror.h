// An array in page-locked host memory with its copy on the device, for values that are copied in every step.
// Copies are asynchronous, on the given stream; the code that reads or writes the host's side waits for them.
#pragma once

#include <cstddef>

#include "kernels/cuda/check.h"
#include "kernels/cuda/memory.h"

namespace tg::engine::cuda {

template <class T>
class Mirror {
 public:
  explicit Mirror(std::size_t count) : host_(count), device_(count) {}

  T* host() { return host_.data(); }
  const T* host() const { return host_.data(); }
  T* device() { return device_.data(); }
  std::size_t size() const { return host_.size(); }
  std::size_t bytes() const { return size() * sizeof(T); }  // bytes on each side

  // Copies the first `count` elements.
  void copy_in(std::size_t count, cudaStream_t stream) {
    if (count > 0) TG_CUDA(cudaMemcpyAsync(device(), host(), count * sizeof(T), cudaMemcpyHostToDevice, stream));
  }
  void copy_out(std::size_t count, cudaStream_t stream) {
    if (count > 0) TG_CUDA(cudaMemcpyAsync(host(), device(), count * sizeof(T), cudaMemcpyDeviceToHost, stream));
  }

 private:
  kernels::cuda::PinnedArray<T> host_;
  kernels::cuda::DeviceArray<T> device_;
};

}  // namespace tg::engine::cuda

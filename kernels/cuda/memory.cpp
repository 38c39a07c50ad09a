#include "kernels/cuda/memory.h"

#include <algorithm>
#include <exception>

namespace tg::kernels::cuda {
namespace {

int current_device() {
  int device = 0;
  TG_CUDA(cudaGetDevice(&device));
  return device;
}

std::string mebibytes(std::size_t bytes) { return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Stream::Stream(Urgency urgency) {
  int usual = 0, first = 0;
  TG_CUDA(cudaDeviceGetStreamPriorityRange(&usual, &first));
  cudaStream_t stream = nullptr;
  TG_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgency == Urgency::kFirst ? first : usual));
  stream_.reset(stream);
}

Event::Event(unsigned flags) {
  cudaEvent_t event = nullptr;
  TG_CUDA(cudaEventCreateWithFlags(&event, flags));
  event_.reset(event);
}

DeviceBytes::DeviceBytes(std::size_t bytes) {
  if (bytes == 0) return;
  const int device = current_device();
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    TG_CUDA(cudaMemGetInfo(&free, &total));
    throw OutOfMemory("no device memory for " + mebibytes(bytes) + ": " + mebibytes(free) + " of " + mebibytes(total) +
                      " are free on device " + std::to_string(device));
  }
  require_success(result, "cudaMalloc");
  data_ = {data, {device}};
}

PinnedBytes::PinnedBytes(std::size_t bytes) {
  if (bytes == 0) return;
  const int device = current_device();
  void* data = nullptr;
  const cudaError_t result = cudaMallocHost(&data, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory("no page-locked host memory for " + mebibytes(bytes));
  }
  require_success(result, "cudaMallocHost");
  data_ = {data, {device}};
}

HostArray allocate_host(std::size_t count) {
  try {
    const auto owner = std::make_shared<PinnedArray<float>>(count);
    std::ranges::fill(owner->span(), 0.0F);
    return {{owner, owner->data()}, count};
  } catch (const std::exception&) {  // the system lets no (more) memory be locked, which only costs speed
    cudaGetLastError();
    return AlignedArray<float>(count);
  }
}

bool is_page_locked(const void* address) {
  cudaPointerAttributes attributes{};
  TG_CUDA(cudaPointerGetAttributes(&attributes, address));
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace tg::kernels::cuda

// Streams, events and memory of the device that is the calling thread's current one (cudaSetDevice) when they are made.
// Each object owns what it made; move only. Any thread may destroy it, once the work that uses it is done.
// Errors: std::runtime_error that names the call; OutOfMemory if there is not enough memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/cuda/check.h"
#include "kernels/cuda/wait.h"
#include "kernels/host_array.h"

namespace tg::kernels::cuda {

// "no device memory for 512 MiB: 301 MiB of 81079 MiB are free on device 0". The caller adds what to change.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;  // copying an exception must not throw
};

// Which kernels the device takes first when several streams have some.
enum class Urgency { kUsual, kFirst };

// A stream that does not wait for the default stream.
class Stream {
 public:
  explicit Stream(Urgency urgency = Urgency::kUsual);
  cudaStream_t get() const { return stream_.get(); }
  // Returns once the stream's work is done. call: its name, for the error (wait.h).
  void synchronize(const char* call) const { wait_for(get(), kCallPatience, call); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

class Event {
 public:
  // flags: those of cudaEventCreateWithFlags; an event with cudaEventDefault records the time.
  explicit Event(unsigned flags = cudaEventDisableTiming);
  cudaEvent_t get() const { return event_.get(); }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
};

// Frees memory on its own device: a thread that never chose a device would open a context on the first one. Freeing
// waits for the device, so the memory of a device that has hung is not freed.
template <cudaError_t (*kFree)(void*)>
struct FreeOnDevice {
  int device = 0;
  void operator()(void* data) const {
    if (has_hung()) return;
    cudaSetDevice(device);
    kFree(data);
  }
};

// A range of bytes on the device, 256-byte aligned, and one of page-locked host memory; 0 bytes own no memory.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::size_t bytes);
  void* data() const { return data_.get(); }

 private:
  std::unique_ptr<void, FreeOnDevice<cudaFree>> data_;
};

class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t bytes);
  void* data() const { return data_.get(); }

 private:
  std::unique_ptr<void, FreeOnDevice<cudaFreeHost>> data_;
};

// An array of count elements in one of the two, contents unspecified. The host cannot read or write a device's.
template <class T, class Bytes>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  explicit Array(std::size_t count) : bytes_(count * sizeof(T)), count_(count) {}
  Array(Array&& other) noexcept : bytes_(std::move(other.bytes_)), count_(std::exchange(other.count_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }

  T* data() { return static_cast<T*>(bytes_.data()); }
  const T* data() const { return static_cast<const T*>(bytes_.data()); }
  std::size_t size() const { return count_; }
  std::span<T> span() { return {data(), count_}; }
  std::span<const T> span() const { return {data(), count_}; }

 private:
  Bytes bytes_;
  std::size_t count_ = 0;
};

template <class T>
using DeviceArray = Array<T, DeviceBytes>;
template <class T>
using PinnedArray = Array<T, PinnedBytes>;

// As MemorySpace::allocate_host: zeroed, and page-locked if possible.
HostArray allocate_host(std::size_t count);
// Whether a copy from there runs while the host goes on. For other memory the host waits.
bool is_page_locked(const void* address);

}  // namespace tg::kernels::cuda

// The memory space of a run whose gradient and state live on a device. Its tensor kernels have a stream each, of the
// highest priority: data for other nodes goes before the engine's work, which has the device otherwise.
//
// A call returns when its stream is finished. So what it wrote on the device is ready for every other stream (those of
// the memory space's other kernels, and the engine's) without an event. Conversely nothing here waits for the engine:
// the data given to a call must be complete when the call begins. Waiting means polling (wait.h): 9 us with the launch
// on an H100, where polling a word in mapped memory takes 7 but does not notice a kernel that failed.
//
// Threads. As MemorySpace and TensorKernels; every call makes the device the calling thread's current one.
// Errors. std::runtime_error that names the call; OutOfMemory (memory.h), which is a std::bad_alloc and says what to
// change.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "kernels/cuda/memory.h"
#include "kernels/memory_space.h"

namespace tg::kernels::cuda {

class DeviceMemorySpace final : public MemorySpace {
 public:
  explicit DeviceMemorySpace(int device);

  std::string_view name() const override { return name_; }  // "cuda sm_90"
  std::unique_ptr<TensorKernels> make_kernels() override;
  Floats allocate(std::size_t count) override;
  void release(Floats floats) override;
  HostArray allocate_host(std::size_t count) override;

 private:
  const int device_;
  std::string name_;
  std::mutex mutex_;
  std::map<const float*, DeviceArray<float>> arrays_;  // by address; allocated and not yet released
};

}  // namespace tg::kernels::cuda

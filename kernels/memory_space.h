// Where a run's gradient and state live: host memory, or a device's. A memory space allocates memory there and makes
// the tensor kernels that work on it; the run's engine comes from the same module, so that a gradient never leaves its
// memory space. Any thread may call it. It outlives its memory and its kernels.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/host_array.h"
#include "kernels/memory_span.h"
#include "kernels/tensor_kernels.h"

namespace tg::kernels {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  virtual std::string_view name() const = 0;  // what computes there, for logs and records
  // Whether the host can address this memory: it then keeps short pieces in its caches. On a device each call takes
  // some microseconds, however short the piece, so pieces are long there.
  virtual bool host_accessible() const { return false; }

  // Makes kernels for one thread.
  virtual std::unique_ptr<TensorKernels> make_kernels() = 0;

  // Allocates zeroed floats, the first one 64-byte aligned; count > 0. Throws std::bad_alloc. MemoryArray owns them.
  virtual Floats allocate(std::size_t count) = 0;
  virtual void release(Floats floats) = 0;

  // Host memory for floats that are often copied to this memory space: zeroed, the first one 64-byte aligned. For a
  // device it is page-locked if the system allows, so that copies run at full speed while the host goes on. Throws
  // std::bad_alloc.
  virtual HostArray allocate_host(std::size_t count) { return AlignedArray<float>(count); }
};

}  // namespace tg::kernels

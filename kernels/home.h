// Where the gradient and the state of a run live: host memory, or a device's. A home gives memory there and makes the
// tensor kernels that work on it; the engine of a run comes from the same module, so that a gradient never leaves home.
// Any thread may call it. It outlives its memory and its kernels.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/home_span.h"
#include "kernels/host_array.h"
#include "kernels/tensor_kernels.h"

namespace tg::kernels {

class Home {
 public:
  virtual ~Home() = default;
  virtual std::string_view name() const = 0;  // for logs and records: what computes there
  // By the host, which keeps short pieces in its caches. Elsewhere each call takes some microseconds, however short the
  // piece: pieces are long there.
  virtual bool addressable() const { return false; }

  // For one thread.
  virtual std::unique_ptr<TensorKernels> make_kernels() = 0;

  // Zeroed floats, the first one 64-byte aligned; count > 0. Throws std::bad_alloc. HomeArray owns them.
  virtual Floats allocate(std::size_t count) = 0;
  virtual void release(Floats floats) = 0;

  // Host memory for what is copied here again and again: zeroed floats, the first one 64-byte aligned. Page-locked
  // where that lets a device copy at full speed and beside the host, and where the system has as much; else as any.
  // Throws std::bad_alloc.
  virtual HostArray allocate_host(std::size_t count) { return AlignedArray<float>(count); }
};

}  // namespace tg::kernels

// The memory space of a run without a device: ordinary host memory, worked on by the kernels of one instruction set.
#pragma once

#include "kernels/kernels.h"
#include "kernels/memory_space.h"

namespace tg::kernels {

class HostMemorySpace final : public MemorySpace {
 public:
  explicit HostMemorySpace(const Kernels& kernels) : kernels_(kernels) {}

  std::string_view name() const override { return kernels_.name; }
  bool host_accessible() const override { return true; }
  std::unique_ptr<TensorKernels> make_kernels() override;
  Floats allocate(std::size_t count) override;
  void release(Floats floats) override;

 private:
  const Kernels& kernels_;
};

}  // namespace tg::kernels

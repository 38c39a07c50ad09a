// What computes on a node, chosen once when it starts: the processor, or a device driven by a module. A run's engine,
// memory space and tensor kernels come from here, and only from here. Any thread; lives as long as the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/accelerator.h"
#include "engine/engine.h"
#include "kernels/base/status.h"
#include "kernels/memory_space.h"

namespace tg::engine {

struct DeviceChoice {
  EngineKind engine = EngineKind::kAuto;
  AcceleratorOptions options;
};

class ComputeDevice {
 public:
  // Makes the processor's; host must outlive it.
  explicit ComputeDevice(kernels::MemorySpace& host) : space_(host) {}
  // Makes the chosen one, and loads a module if necessary. An error says why there is no device when only a device
  // was allowed. It is not a usage error, since a driver may start later than the program. build: this program's id.
  static Result<ComputeDevice> choose(const DeviceChoice& choice, kernels::MemorySpace& host, std::string_view build);

  kernels::MemorySpace& space() const { return space_; }  // where gradients and state live
  Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options) const;

  // Null for the processor, whose memory is the host's.
  const Accelerator* accelerator() const { return accelerator_; }
  EngineKind engine() const { return accelerator_ == nullptr ? EngineKind::kCpu : EngineKind::kCuda; }
  Math math() const { return math_; }
  // "NVIDIA H100 80GB HBM3 (device 0)"; "" for the processor.
  std::string name() const { return accelerator_ == nullptr ? "" : std::string(accelerator_->device()); }
  DeviceMemory memory() const { return accelerator_ == nullptr ? DeviceMemory{} : accelerator_->memory(); }
  // Why the processor computes though a device was preferred; "" if none was.
  const std::string& why_not() const { return why_not_; }
  bool module_missing() const { return module_missing_; }  // no module is installed

 private:
  ComputeDevice(Accelerator& accelerator, Math math)
      : space_(accelerator.space()), accelerator_(&accelerator), math_(math) {}

  kernels::MemorySpace& space_;
  Accelerator* accelerator_ = nullptr;
  Math math_ = Math::kFp32;
  std::string why_not_;
  bool module_missing_ = false;
};

}  // namespace tg::engine

// What computes on a node, chosen once when it starts: the processor, or a device that a module drives. Engine, home
// and tensor kernels of a run come from here, and only from here. Any thread; lives as long as the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/accelerator.h"
#include "engine/engine.h"
#include "kernels/base/status.h"
#include "kernels/home.h"

namespace tg::engine {

struct DeviceChoice {
  EngineKind engine = EngineKind::kAuto;
  AcceleratorOptions options;
};

class ComputeDevice {
 public:
  // The processor. host outlives it.
  explicit ComputeDevice(kernels::Home& host) : home_(host) {}
  // As the choice says. Loads a module where it has to. The error says why there is no device where nothing else
  // was to be taken; it is none of usage, since a driver may come later than the program. build: of this program.
  static Result<ComputeDevice> choose(const DeviceChoice& choice, kernels::Home& host, std::string_view build);

  kernels::Home& home() const { return home_; }  // of gradients and state
  Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options) const;

  // Null: it is the processor, whose memory is the host's.
  const Accelerator* accelerator() const { return accelerator_; }
  EngineKind engine() const { return accelerator_ == nullptr ? EngineKind::kCpu : EngineKind::kCuda; }
  Math math() const { return math_; }
  // "NVIDIA H100 80GB HBM3 (device 0)"; "" for the processor.
  std::string name() const { return accelerator_ == nullptr ? "" : std::string(accelerator_->device()); }
  DeviceMemory memory() const { return accelerator_ == nullptr ? DeviceMemory{} : accelerator_->memory(); }
  // Why the processor computes although a device might have; "" if that was not asked for.
  const std::string& why_not() const { return why_not_; }
  bool module_missing() const { return module_missing_; }  // simply none is installed

 private:
  ComputeDevice(Accelerator& accelerator, Math math)
      : home_(accelerator.home()), accelerator_(&accelerator), math_(math) {}

  kernels::Home& home_;
  Accelerator* accelerator_ = nullptr;
  Math math_ = Math::kFp32;
  std::string why_not_;
  bool module_missing_ = false;
};

}  // namespace tg::engine

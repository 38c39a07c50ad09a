#include "engine/compute_device.h"

#include "engine/load_accelerator.h"

namespace tg::engine {

Result<ComputeDevice> ComputeDevice::choose(const DeviceChoice& choice, kernels::MemorySpace& host,
                                            std::string_view build) {
  ComputeDevice processor(host);
  if (choice.engine == EngineKind::kCpu) return processor;
  const Result<Accelerator*> loaded = load_accelerator(choice.options, build);
  if (loaded.ok()) return ComputeDevice(**loaded, choice.options.math);
  if (choice.engine == EngineKind::kCuda)
    return Error{ErrorKind::kFailed, "engine = cuda: " + loaded.error().message + "; or set engine = cpu"};
  processor.why_not_ = loaded.error().message;
  processor.module_missing_ = loaded.error().kind == ErrorKind::kNotFound;
  return processor;
}

Result<std::unique_ptr<Engine>> ComputeDevice::make_engine(const Model& model, const EngineOptions& options) const {
  return accelerator_ == nullptr ? make_cpu_engine(model, options) : accelerator_->make_engine(model, options);
}

}  // namespace tg::engine

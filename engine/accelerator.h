// The interface of a module that is loaded at run time: a device's memory with its tensor kernels, and engines that
// compute there (kernels/memory_space.h says why both come from one place). engine/cuda implements it as tgd-cuda.so,
// which exports the two functions named by kModuleBuild and kOpenModule; engine/load_accelerator.h finds and loads it.
// Module and program are compiled from one tree: the build ids are compared before anything else is called.
//
// Threads. Any thread may use an accelerator, one thread at a time each of its engines. It is never closed: a compute
// thread that was left behind may hold arrays of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/choices.h"
#include "engine/engine.h"
#include "kernels/base/status.h"
#include "kernels/memory_space.h"

namespace tg::engine {

using tg::Math;

struct DeviceMemory {
  std::uint64_t total = 0, free = 0;  // bytes
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual std::string_view device() const = 0;  // "NVIDIA H100 80GB HBM3 (device 0)"
  // "CUDA 13.0, driver 13.0, cuDNN 9.14.0, cuBLAS 13.1.0 (/usr/local/cuda/lib)": versions and the libraries' folders.
  virtual std::string_view library() const = 0;
  virtual DeviceMemory memory() const = 0;  // at the time of the call
  virtual kernels::MemorySpace& space() = 0;
  // As make_cpu_engine; options.threads is ignored.
  virtual Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options) = 0;
};

struct AcceleratorOptions {
  int device = 0;
  Math math = Math::kFp32;
};

// The names of the module's exported functions.
inline constexpr const char* kModuleBuild = "tgd_module_build";
inline constexpr const char* kOpenModule = "tgd_open_module";
using ModuleBuild = const char* (*)();
// Opens the device and computes a first step. Null if there is no such device, no driver or one too old (both versions
// are named), or if a library lacks something; `why` then says so and what to do. That the processor could do the work
// instead is for the caller to say.
using OpenModule = Accelerator* (*)(const AcceleratorOptions& options, std::string& why);

}  // namespace tg::engine

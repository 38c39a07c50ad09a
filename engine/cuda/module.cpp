// The module tgd-cuda.so: it exports what engine/accelerator.h asks for, and nothing else.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/accelerator.h"
#include "engine/cuda/build.h"
#include "engine/cuda/cuda_engine.h"
#include "engine/cuda/installed.h"
#include "engine/cuda/library.h"
#include "engine/models/builder.h"
#include "kernels/cuda/device_memory_space.h"

namespace tg::engine::cuda {
namespace {

// Compute capabilities, the device's generation: "8.6" is 86.
constexpr int kMinCapability = 75;          // what the module's kernels are compiled for
constexpr int kMinRoundingCapability = 80;  // multiplies tf32 and bf16

std::string dotted(int version, int unit) {
  return std::to_string(version / unit) + "." + std::to_string(version % unit);
}
std::string cuda_version(int version) { return dotted(version / 10, 100); }  // 13010

class CudaAccelerator final : public Accelerator {
 public:
  CudaAccelerator(DeviceChoice choice)
      : choice_(std::move(choice)),
        device_(choice_.name + " (device " + std::to_string(choice_.number) + ")"),
        library_(library_versions() + " (" + library_folders() + ")"),
        space_(choice_.number) {}

  std::string_view device() const override { return device_; }
  std::string_view library() const override { return library_; }
  DeviceMemory memory() const override {
    TG_CUDA(cudaSetDevice(choice_.number));
    std::size_t free = 0, total = 0;
    TG_CUDA(cudaMemGetInfo(&free, &total));
    return {total, free};
  }
  kernels::MemorySpace& space() override { return space_; }
  Result<std::unique_ptr<Engine>> make_engine(const Model& model, const EngineOptions& options) override {
    return make_cuda_engine(model, choice_, options);
  }

 private:
  const DeviceChoice choice_;
  const std::string device_, library_;
  kernels::cuda::DeviceMemorySpace space_;
};

// Says why there is no device to use at all; empty if there is one.
std::string missing_driver(int& devices) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0)
    return "this machine has no NVIDIA driver (libcuda.so.1 cannot be loaded); install one that supports CUDA " +
           cuda_version(runtime) + " (nvidia-smi shows it)";
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found == cudaErrorInsufficientDriver)
    return "the NVIDIA driver supports CUDA " + cuda_version(driver) + " and this module needs CUDA " +
           cuda_version(runtime) + "; install a newer driver";
  if (found == cudaErrorNoDevice || (found == cudaSuccess && devices == 0))
    return "the NVIDIA driver (CUDA " + cuda_version(driver) +
           ") finds no GPU; see what nvidia-smi lists and whether this process may use it (CUDA_VISIBLE_DEVICES, a "
           "container's --gpus)";
  if (found != cudaSuccess)
    return std::string("cudaGetDeviceCount: ") + cudaGetErrorString(found) + "; see whether nvidia-smi works";
  return {};
}

// Says why this device cannot be used; empty if it can.
std::string unfit(const AcceleratorOptions& options, const std::string& name, int capability) {
  if (capability < kMinCapability)
    return name + " (device " + std::to_string(options.device) + ") has compute capability " + dotted(capability, 10) +
           " and this module needs " + dotted(kMinCapability, 10) + "; choose another device";
  if (options.math != Math::kFp32 && capability < kMinRoundingCapability)
    return std::string("math = ") + to_word(options.math) + " needs compute capability " +
           dotted(kMinRoundingCapability, 10) + ", and " + name + " (device " + std::to_string(options.device) +
           ") has " + dotted(capability, 10) + "; set math = fp32";
  return {};
}

// Runs a step of a very small network: anything missing for a convolution, a product or a kernel of the module shows
// here, where the caller can still choose the CPU. Throws std::runtime_error.
void try_out(const DeviceChoice& choice) {
  ModelBuilder builder("a first step", {3, 8, 8});
  builder.convolution("convolution", {.count = 8, .kernel = 3, .padding = 1}, {}).relu();
  const Model model = builder.dense("product", 8, {}).build(0).value();
  Result<std::unique_ptr<Engine>> engine = make_cuda_engine(model, choice, {.batch = 8, .evaluation_batch = 1});
  if (!engine.ok()) throw std::runtime_error(engine.error().message);
  const std::size_t count = model.segments.padded_count();
  kernels::cuda::DeviceArray<float> parameters(count), gradients(count);
  const kernels::cuda::Stream stream;
  TG_CUDA(cudaMemsetAsync(parameters.data(), 0, count * sizeof(float), stream.get()));
  stream.synchronize("a first step");
  Batch batch;
  batch.count = 8;
  batch.images = AlignedArray<float>(8 * model.input.elements());
  batch.labels.assign(8, 0);
  (*engine)->forward(parameters.data(), batch);
  (*engine)->backward(1, gradients.data(), [](std::size_t, std::size_t) {});
}

std::unique_ptr<Accelerator> open_device(const AcceleratorOptions& options, std::string& why) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);  // the order of nvidia-smi; CUDA's own puts the fastest first
  int devices = 0;
  why = missing_driver(devices);
  if (!why.empty()) return nullptr;
  if (options.device < 0 || options.device >= devices) {
    why = "device = " + std::to_string(options.device) + ", and this machine has " +
          (devices == 1 ? "one GPU, number 0"
                        : std::to_string(devices) + " GPUs, numbers 0 to " + std::to_string(devices - 1)) +
          "; set device to one of them";
    return nullptr;
  }
  cudaDeviceProp properties{};
  TG_CUDA(cudaGetDeviceProperties(&properties, options.device));
  const std::string name = properties.name;
  why = unfit(options, name, 10 * properties.major + properties.minor);
  if (!why.empty()) return nullptr;
  why = damaged_cudnn();
  if (!why.empty()) return nullptr;
  const DeviceChoice choice{options.device, name, options.math};
  try_out(choice);
  return std::make_unique<CudaAccelerator>(choice);
}

}  // namespace
}  // namespace tg::engine::cuda

#define TG_EXPORT extern "C" __attribute__((visibility("default")))

TG_EXPORT const char* tgd_module_build() { return tg::engine::cuda::build_id(); }

TG_EXPORT tg::engine::Accelerator* tgd_open_module(const tg::engine::AcceleratorOptions& options, std::string& why) {
  try {
    return tg::engine::cuda::open_device(options, why).release();
  } catch (const std::exception& e) {
    why = std::string("device ") + std::to_string(options.device) + ": " + e.what() +
          "; see whether nvidia-smi works and whether the libraries are of one version";
    return nullptr;
  }
}

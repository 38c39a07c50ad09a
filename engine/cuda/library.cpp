#include "engine/cuda/library.h"

#include <stdexcept>

#include "engine/cuda/installed.h"

namespace tg::engine::cuda {
namespace {

[[noreturn]] void fail(std::string_view call, const std::string& why, bool no_memory) {
  const std::string text = std::string(call.substr(0, call.find('('))) + ": " + why;
  if (no_memory) throw kernels::cuda::OutOfMemory(text);
  throw std::runtime_error(text);
}

std::string dotted(std::size_t major, std::size_t minor, std::size_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

// "13.1" for 13010.
std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int claimed(int device) {
  TG_CUDA(cudaSetDevice(device));
  return device;
}

template <class Owner, class Create>
Owner make(const Create& create) {
  typename Owner::pointer handle = nullptr;
  create(&handle);
  return Owner(handle);
}

}  // namespace

void require_success(cudnnStatus_t result, std::string_view call) {
  if (result == CUDNN_STATUS_SUCCESS) return;
  char detail[256] = {};
  cudnnGetLastErrorString(detail, sizeof detail);
  const bool parts_differ =
      result == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH || result == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
  fail(call,
       std::string(cudnnGetErrorString(result)) + (detail[0] == '\0' ? "" : ": ") + detail +
           (parts_differ ? std::string(kReinstallCudnn) : ""),
       result == CUDNN_STATUS_ALLOC_FAILED || result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
}

void require_success(cublasStatus_t result, std::string_view call) {
  if (result != CUBLAS_STATUS_SUCCESS)
    fail(call, cublasLtGetStatusString(result), result == CUBLAS_STATUS_ALLOC_FAILED);
}

TensorDescriptor make_tensor(int samples, const ImageShape& shape) {
  auto tensor =
      make<TensorDescriptor>([](cudnnTensorDescriptor_t* made) { TG_CUDNN(cudnnCreateTensorDescriptor(made)); });
  TG_CUDNN(cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, samples, shape.channels,
                                      shape.height, shape.width));
  return tensor;
}

// Makes the device the thread's current one before the streams are made.
Library::Library(int device, Math math) : device_(claimed(device)), math_(math) {
  cudnn_ = make<decltype(cudnn_)>([](cudnnHandle_t* made) { TG_CUDNN(cudnnCreate(made)); });
  cublas_ = make<decltype(cublas_)>([](cublasLtHandle_t* made) { TG_CUBLAS(cublasLtCreate(made)); });
  TG_CUDNN(cudnnSetStream(cudnn_.get(), compute_.get()));
}

void Library::claim() const { TG_CUDA(cudaSetDevice(device_)); }

cudnnMathType_t Library::convolution_math() const { return math_ == Math::kFp32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH; }

cublasComputeType_t Library::product_math() const {
  return math_ == Math::kFp32 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
}

void Library::wait() {
  TG_CUDA(cudaEventRecord(done_.get(), compute()));
  wait_for(done_.get());
}

void Library::take_workspace(std::size_t bytes) {
  workspace_ = {};  // released before the new one is allocated
  workspace_bytes_ = 0;
  workspace_ = kernels::cuda::DeviceBytes(bytes);
  workspace_bytes_ = bytes;
}

std::string library_versions() {
  int runtime = 0, driver = 0;
  TG_CUDA(cudaRuntimeGetVersion(&runtime));
  TG_CUDA(cudaDriverGetVersion(&driver));
  const std::size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  return "CUDA " + cuda_version(runtime) + ", driver " + cuda_version(driver) + ", cuDNN " +
         dotted(cudnn / 10000, cudnn % 10000 / 100, cudnn % 100) + ", cuBLAS " +
         dotted(cublas / 10000, cublas % 10000 / 100, cublas % 100);
}

}  // namespace tg::engine::cuda

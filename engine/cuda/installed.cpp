#include "engine/cuda/installed.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <filesystem>
#include <utility>

namespace tg::engine::cuda {
namespace {

// The parts of cuDNN 9 that a convolution or a batch normalization may load.
constexpr const char* kParts[] = {
    "graph", "ops", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled"};

// The file of the library that contains the function.
template <class Function>
std::filesystem::path file_of(Function* function) {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(function), &info) == 0 ? "" : info.dli_fname;
}

std::filesystem::path cudnn_file() { return file_of(&cudnnGetVersion); }

std::string advice() { return std::string(kReinstallCudnn) + "; libcudnn.so.9 is " + cudnn_file().string(); }

}  // namespace

std::string missing_part(const std::string& file) {
  const std::filesystem::path beside = cudnn_file().parent_path() / file;
  for (const std::string& place : {beside.string(), file})
    if (::dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return {};  // never closed: cuDNN loads it next
  return file + ", a part of cuDNN, cannot be loaded: " + ::dlerror() + advice();
}

std::string damaged_cudnn() {
  for (const char* part : kParts)
    if (std::string why = missing_part("libcudnn_" + std::string(part) + ".so.9"); !why.empty()) return why;
  const auto other = [](const char* part, cudnnStatus_t found) {
    if (found == CUDNN_STATUS_SUCCESS) return std::string();
    return "libcudnn_" + std::string(part) + ".so.9 does not match libcudnn.so.9: " + cudnnGetErrorString(found) +
           advice();
  };
  if (std::string why = other("graph", cudnnGraphVersionCheck()); !why.empty()) return why;
  if (std::string why = other("ops", cudnnOpsVersionCheck()); !why.empty()) return why;
  return other("cnn", cudnnCnnVersionCheck());
}

std::string parts_elsewhere(std::size_t version, const std::filesystem::path& folder) {
  constexpr std::pair<std::size_t, const char*> kLater[] = {{92000, "libcudnn_engines_tensor_ir.so.9"},
                                                            {92600, "libcudnn_ext.so.9"}};
  std::string names;
  for (const auto& [since, name] : kLater)
    if (version >= since && !std::filesystem::exists(folder / name))
      names += (names.empty() ? ", without " : " and ") + std::string(name);
  return names.empty() ? names : names + " beside it";
}

std::string library_folders() {
  const std::string cudnn = cudnn_file().parent_path(), cublas = file_of(&cublasLtGetVersion).parent_path();
  const std::string elsewhere = parts_elsewhere(cudnnGetVersion(), cudnn);
  return (cudnn == cublas ? cudnn : "cuBLAS of " + cublas + ", cuDNN of " + cudnn) + elsewhere;
}

}  // namespace tg::engine::cuda

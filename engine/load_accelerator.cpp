#include "engine/load_accelerator.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace tg::engine {
namespace {

constexpr const char* kModule = "tgd-cuda.so";

Error failed(std::string message) { return {ErrorKind::kFailed, std::move(message)}; }

// The loader says "libcudnn.so.9: cannot open shared object file: No such file or directory" about a missing library.
Error not_loaded(const std::string& path, const std::string& said) {
  if (said.find("undefined symbol") != std::string::npos)
    return failed(path + " cannot be loaded: " + said +
                  "; cuDNN or cuBLAS here is older than what it was built with, or the module is of another build: "
                  "install newer ones (deploy/jobs.md, GPUs), or reinstall tgd-cuda");
  const std::size_t colon = said.find(": cannot open shared object file");
  if (colon == std::string::npos || said.starts_with(path))
    return failed(path + " cannot be loaded: " + said + "; reinstall the package tgd-cuda of this build");
  return failed(path + " needs " + said.substr(0, colon) +
                ", which is not on this machine; install it: cuDNN 9 and cuBLAS are NVIDIA's packages "
                "(deploy/jobs.md, GPUs)");
}

template <class Function>
Function find(void* module, const char* name) {
  return reinterpret_cast<Function>(::dlsym(module, name));
}

}  // namespace

std::vector<std::string> module_paths(const std::string& program) {
  const std::filesystem::path folder = std::filesystem::path(program).parent_path();
  return {(folder / TGD_MODULE_FOLDER / kModule).lexically_normal(),
          (folder / "../engine" / kModule).lexically_normal()};
}

Result<Accelerator*> load_accelerator(const AcceleratorOptions& options, std::string_view build) {
  std::error_code unknown;
  const std::vector<std::string> places = module_paths(std::filesystem::read_symlink("/proc/self/exe", unknown));
  const auto there =
      std::ranges::find_if(places, [&](const std::string& path) { return std::filesystem::exists(path, unknown); });
  if (there == places.end())
    return Error{ErrorKind::kNotFound,
                 "no module for GPUs is installed (" + places.front() + "); install the package tgd-cuda"};
  const std::string& path = *there;
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return not_loaded(path, ::dlerror());
  const auto module_build = find<ModuleBuild>(module, kModuleBuild);
  const auto open_module = find<OpenModule>(module, kOpenModule);
  if (module_build == nullptr || open_module == nullptr)
    return failed(path + " is not a module of tgd: it has no " +
                  (module_build == nullptr ? kModuleBuild : kOpenModule) +
                  "; reinstall the package tgd-cuda of this build");
  if (const std::string other = module_build(); other != build)
    return failed(path + " is of the build " + other + ", and this tgd of " + std::string(build) +
                  "; install both from one build");
  std::string why;
  Accelerator* const accelerator = open_module(options, why);
  if (accelerator == nullptr) return failed(why);
  return accelerator;
}

}  // namespace tg::engine

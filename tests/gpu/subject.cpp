#include "tests/gpu/subject.h"

#include <dlfcn.h>

#include <stdexcept>
#include <vector>

namespace tg::gpu {
namespace {

engine::Accelerator* open_module(const SubjectOptions& options) {
  void* const module = dlopen(options.module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw std::runtime_error(dlerror());
  const auto open = reinterpret_cast<engine::OpenModule>(dlsym(module, engine::kOpenModule));
  if (open == nullptr) throw std::runtime_error(options.module + " has no " + engine::kOpenModule);
  std::string why;
  engine::Accelerator* const accelerator = open({options.device, options.math}, why);
  if (accelerator == nullptr) throw std::runtime_error(why);
  return accelerator;
}

}  // namespace

engine::Accelerator& open_subject(const SubjectOptions& options) {
  if (!options.module.empty()) return *open_module(options);
  static std::vector<std::unique_ptr<engine::Accelerator>> stand_ins;
  return *stand_ins.emplace_back(make_stand_in(options.fault, options.math));
}

}  // namespace tg::gpu

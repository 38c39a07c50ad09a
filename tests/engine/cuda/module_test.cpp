// The module loads with the libraries of this machine, is of the same build as the program, shows nothing but its two
// functions, and says what is missing where there is no device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/accelerator.h"
#include "schema/version.h"

namespace tg::engine {
namespace {

class Module : public testing::Test {
 protected:
  Module() : module_(::dlopen(TGD_MODULE, RTLD_NOW | RTLD_LOCAL)) {}

  void SetUp() override { ASSERT_NE(module_, nullptr) << ::dlerror(); }

  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(module_, name));
  }

  void* const module_;  // never closed, as in the program
};

TEST_F(Module, IsOfTheProgramsBuild) {
  const auto build = find<ModuleBuild>(kModuleBuild);
  ASSERT_NE(build, nullptr);
  EXPECT_EQ(build(), schema::build_id());
}

// What it is linked with stays its own: two copies of one symbol would be taken for one.
TEST_F(Module, ShowsNothingElse) {
  for (const char* hidden : {"cudaMalloc", "_ZN2tg10abort_withERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                             "_ZN2tg6engine4cuda8build_idEv"}) {
    Dl_info info{};
    void* const found = ::dlsym(module_, hidden);
    if (found == nullptr || ::dladdr(found, &info) == 0) continue;
    EXPECT_STRNE(info.dli_fname, TGD_MODULE) << hidden;
  }
}

TEST_F(Module, NamesTheMissingDriver) {
  const auto open = find<OpenModule>(kOpenModule);
  ASSERT_NE(open, nullptr);
  if (std::ifstream("/proc/driver/nvidia/version")) GTEST_SKIP() << "this machine has an NVIDIA driver";
  std::string why;
  EXPECT_EQ(open({}, why), nullptr);
  EXPECT_NE(why.find("no NVIDIA driver"), std::string::npos) << why;
  EXPECT_NE(why.find("; install one that supports CUDA "), std::string::npos) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

}  // namespace
}  // namespace tg::engine

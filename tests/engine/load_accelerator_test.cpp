// The places where the module of a device is looked for. tests/process/test_engine.py uses modules that are there.
#include "engine/load_accelerator.h"

#include <gtest/gtest.h>

#include "engine/compute_device.h"
#include "kernels/host_memory_space.h"

namespace tg::engine {
namespace {

TEST(LoadAccelerator, LooksBesideTheProgram) {
  const std::vector<std::string> paths = module_paths("/opt/tgd/bin/tgd");
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_TRUE(paths[0].starts_with("/opt/tgd/lib")) << paths[0];
  EXPECT_TRUE(paths[0].ends_with("/tgd/tgd-cuda.so")) << paths[0];
  EXPECT_EQ(paths[1], "/opt/tgd/engine/tgd-cuda.so");
}

TEST(ComputeDevice, WithoutAModuleTheProcessorComputes) {
  kernels::HostMemorySpace host(*kernels::available().back());
  const auto asked = ComputeDevice::choose({EngineKind::kCpu, {}}, host, "a build");
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->why_not(), "");
  const auto chosen = ComputeDevice::choose({EngineKind::kAuto, {}}, host, "a build");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->accelerator(), nullptr);
  EXPECT_EQ(chosen->engine(), EngineKind::kCpu);
  EXPECT_EQ(chosen->name(), "");
  EXPECT_EQ(&chosen->space(), &host);
  EXPECT_TRUE(chosen->module_missing());
  EXPECT_NE(chosen->why_not().find("install the package tgd-cuda"), std::string::npos) << chosen->why_not();
  const auto needed = ComputeDevice::choose({EngineKind::kCuda, {}}, host, "a build");
  ASSERT_FALSE(needed.ok());
  EXPECT_EQ(needed.error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace tg::engine

// What is installed is looked at before it is used: cuDNN ends the process where it does not find a part of itself.
#include "engine/cuda/installed.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

namespace tg::engine::cuda {
namespace {

TEST(Installed, IsComplete) { EXPECT_EQ(damaged_cudnn(), ""); }

TEST(Installed, MissesAPart) {
  const std::string why = missing_part("libcudnn_absent.so.9");
  EXPECT_TRUE(why.starts_with("libcudnn_absent.so.9, a part of cuDNN, cannot be loaded: ")) << why;
  EXPECT_NE(why.find("; reinstall cuDNN 9"), std::string::npos) << why;
  EXPECT_NE(why.find("/libcudnn.so.9"), std::string::npos) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

TEST(Installed, HasAFolder) {
  const std::string folders = library_folders();
  EXPECT_TRUE(folders.starts_with("/") || folders.starts_with("cuDNN of /")) << folders;
}

}  // namespace
}  // namespace tg::engine::cuda

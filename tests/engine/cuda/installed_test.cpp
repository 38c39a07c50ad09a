// What is installed is looked at before it is used: cuDNN ends the process where it does not find a part of itself.
#include "engine/cuda/installed.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

// What cuDNN opens by its bare name comes from elsewhere if it is not there.
TEST(Installed, SaysWhichPartsAreElsewhere) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "parts_elsewhere";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(parts_elsewhere(91900, folder), "");
  EXPECT_EQ(parts_elsewhere(92000, folder), ", without libcudnn_engines_tensor_ir.so.9 beside it");
  EXPECT_EQ(parts_elsewhere(92600, folder),
            ", without libcudnn_engines_tensor_ir.so.9 and libcudnn_ext.so.9 beside it");
  std::ofstream(folder / "libcudnn_engines_tensor_ir.so.9").flush();
  EXPECT_EQ(parts_elsewhere(92100, folder), "");
  std::filesystem::remove_all(folder);
}

TEST(Installed, HasAFolder) {
  const std::string folders = library_folders();
  EXPECT_TRUE(folders.starts_with("/") || folders.starts_with("cuBLAS of /")) << folders;
}

}  // namespace
}  // namespace tg::engine::cuda

#include "ctl/fetch/part_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tg::ctl {
namespace {

namespace fs = std::filesystem;

class PartFileTest : public testing::Test {
 protected:
  PartFileTest() { fs::create_directories(folder_); }
  ~PartFileTest() override { fs::remove_all(folder_); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const std::string folder_ = testing::TempDir() + "part_file_test." + std::to_string(getpid());
  const std::string path_ = folder_ + "/model";
};

TEST_F(PartFileTest, AppearsOnlyWhenKept) {
  std::ofstream(path_) << "old";
  PartFile file(path_);
  ASSERT_TRUE(file.open().ok());
  ASSERT_TRUE(file.write("new ").ok());
  ASSERT_TRUE(file.write("bytes").ok());
  ASSERT_TRUE(file.close().ok());
  EXPECT_EQ(content(), "old");
  ASSERT_TRUE(file.keep().ok());
  EXPECT_EQ(content(), "new bytes");
  EXPECT_EQ(entries(), 1u);
  EXPECT_TRUE(sync_folder(folder_).ok());
}

TEST_F(PartFileTest, LeavesNothingBehindWhenGivenUp) {
  {
    PartFile first(path_);
    ASSERT_TRUE(first.open().ok());
    ASSERT_TRUE(first.write("half").ok());
    const PartFile moved(std::move(first));
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(PartFileTest, ErrorsNameThePath) {
  PartFile file(folder_ + "/no/such/model");
  const Status status = file.open();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
  EXPECT_NE(status.error().message.find("/no/such/model"), std::string::npos);
  EXPECT_FALSE(sync_folder(folder_ + "/none").ok());
}

}  // namespace
}  // namespace tg::ctl

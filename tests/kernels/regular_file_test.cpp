// Whatever a name leads to: a regular file is read, and nothing else waits or is read without end.
#include "kernels/base/regular_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace tg {
namespace {

class RegularFileTest : public testing::Test {
 protected:
  RegularFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tgd-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ + "/file") << "0123456789";
  }
  ~RegularFileTest() override { std::filesystem::remove_all(folder_); }

  Error refused(const std::string& path, RegularFile::Links links = RegularFile::Links::kFollow) {
    const Result<RegularFile> file = RegularFile::open(path, links);
    return file ? Error{ErrorKind::kFailed, "no error"} : file.error();
  }

  std::string folder_;
};

TEST_F(RegularFileTest, IsReadFromAnywhereUpToItsEnd) {
  const RegularFile file = RegularFile::open(folder_ + "/file").value();
  EXPECT_EQ(file.bytes(), 10u);
  std::string text(4, ' ');
  EXPECT_EQ(file.read(3, std::as_writable_bytes(std::span(text))).value(), 4u);
  EXPECT_EQ(text, "3456");
  EXPECT_EQ(file.read(8, std::as_writable_bytes(std::span(text))).value(), 2u);
  EXPECT_EQ(file.read(100, std::as_writable_bytes(std::span(text))).value(), 0u);
}

TEST_F(RegularFileTest, NothingElseIsOpened) {
  EXPECT_EQ(refused(folder_ + "/none").kind, ErrorKind::kNotFound);
  EXPECT_EQ(refused(folder_).message, "Is a directory");
  EXPECT_EQ(refused("/dev/zero").message, "it is not a regular file");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(refused(folder_ + "/pipe").message, "it is not a regular file") << "no process writes into it";
  std::filesystem::create_symlink("file", folder_ + "/link");
  EXPECT_TRUE(RegularFile::open(folder_ + "/link").ok());
  EXPECT_EQ(refused(folder_ + "/link", RegularFile::Links::kRefuse).kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace tg

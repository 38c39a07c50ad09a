// A state directory is identified by its number.
#include "daemon/store/directory_id.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/daemon/temporary_directory.h"

namespace tg::daemon {
namespace {

TEST(DirectoryId, IsDrawnOnce) {
  const tests::TemporaryDirectory one, other;
  const Result<std::uint64_t> drawn = directory_id(one.path());
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  EXPECT_NE(*drawn, 0u);
  EXPECT_EQ(*directory_id(one.path()), *drawn);
  EXPECT_NE(*directory_id(other.path()), *drawn);
  std::filesystem::remove(one.path() + "/" + kDirectoryIdFile);
  EXPECT_NE(*directory_id(one.path()), *drawn);
}

TEST(DirectoryId, DamageIsReportedAndNotReplaced) {
  for (const char* const text :
       {"", "0123456789abcdef", "0123456789abcdeg\n", "0000000000000000\n", "0123456789abcdef\n\n"}) {
    const tests::TemporaryDirectory directory;
    const std::string path = directory.path() + "/" + kDirectoryIdFile;
    std::ofstream(path) << text;
    const Result<std::uint64_t> id = directory_id(directory.path());
    ASSERT_FALSE(id.ok()) << text;
    EXPECT_EQ(id.error().message,
              path + " is damaged; delete it: this node then takes part in runs as one that has lost its history");
  }
}

TEST(DirectoryId, ADirectoryThatCannotBeWrittenIsNamed) {
  const Result<std::uint64_t> id = directory_id("/nowhere");
  ASSERT_FALSE(id.ok());
  EXPECT_NE(id.error().message.find("/nowhere/directory-id"), std::string::npos) << id.error().message;
}

}  // namespace
}  // namespace tg::daemon

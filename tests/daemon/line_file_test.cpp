#include "daemon/store/line_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "engine/storage/disk_fault.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using tests::read_text;

class LineFileTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }
  void fill_disk() {
    engine::set_disk_fault([](engine::DiskCall call) { return call == engine::DiskCall::kWrite ? ENOSPC : 0; });
  }

  tests::TemporaryDirectory directory;
  const std::string path = directory.path() + "/lines";
};

TEST_F(LineFileTest, WhatWasAddedIsThere) {
  LineFile file(path);
  file.add("one");
  EXPECT_EQ(read_text(path), "");
  file.flush();
  EXPECT_EQ(read_text(path), "one\n");
  file.add("two");
  EXPECT_TRUE(file.close().ok());
  EXPECT_EQ(read_text(path), "one\ntwo\n");
  file.add("three");
  file.flush();
  EXPECT_EQ(read_text(path), "one\ntwo\n") << "closed is closed";
}

TEST_F(LineFileTest, WhatAFullDiskDidNotTakeComesWithTheNextLines) {
  LineFile file(path);
  file.add("one");
  file.flush();
  fill_disk();
  file.add("two");
  file.flush();
  EXPECT_EQ(read_text(path), "one\n");
  engine::set_disk_fault({});
  file.add("three");
  EXPECT_TRUE(file.close().ok());
  EXPECT_EQ(read_text(path), "one\ntwo\nthree\n");
}

TEST_F(LineFileTest, NothingIsWrittenAfterTheEndThatMissesLines) {
  {
    LineFile file(path);
    file.add("one");
    file.flush();
    fill_disk();
    file.add("two");
    const Status closed = file.close();
    ASSERT_FALSE(closed.ok());
    EXPECT_EQ(closed.error().message, path + " lacks 1 lines: " + std::strerror(ENOSPC));
    engine::set_disk_fault({});
  }
  EXPECT_EQ(read_text(path), "one\n");
}

TEST_F(LineFileTest, WhatWaitsIsBounded) {
  LineFile file(path);
  fill_disk();
  const std::string line(LineFile::kMostWaitingBytes / 4, 'x');
  for (int i = 0; i < 10; ++i) file.add(line);
  engine::set_disk_fault({});
  const Status closed = file.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_NE(closed.error().message.find("lacks 7 lines"), std::string::npos) << closed.error().message;
  EXPECT_EQ(read_text(path).size(), 3 * (line.size() + 1));
}

TEST_F(LineFileTest, APlaceWithoutTheFileIsAnError) {
  LineFile file(directory.path() + "/none/lines");
  file.add("one");
  EXPECT_FALSE(file.close().ok());
}

}  // namespace
}  // namespace tg::daemon

#include "daemon/store/line_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/storage/disk_fault.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using tests::read_text;
using tests::write_text;

class LineFileTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }
  void fill_disk() {
    engine::set_disk_fault([](engine::DiskCall call) { return call == engine::DiskCall::kWrite ? ENOSPC : 0; });
  }

  tests::TemporaryDirectory directory;
  const std::string path = directory.path() + "/lines";
};

TEST_F(LineFileTest, AddedLinesAreThere) {
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

TEST_F(LineFileTest, LinesRefusedByAFullDiskAreRetried) {
  LineFile file(path);
  file.add("one");
  file.flush();
  fill_disk();
  file.add("two");
  file.flush();
  EXPECT_EQ(read_text(path), "one\n");
  const LineFile::Lines lines = file.lines();
  EXPECT_EQ(lines.file_bytes, 4U);
  EXPECT_EQ(lines.waiting, "two\n") << "a joiner is given them, too";
  engine::set_disk_fault({});
  file.add("three");
  EXPECT_TRUE(file.close().ok());
  EXPECT_EQ(read_text(path), "one\ntwo\nthree\n");
}

TEST_F(LineFileTest, NothingIsWrittenAfterClose) {
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

TEST_F(LineFileTest, BufferedLinesAreBounded) {
  LineFile file(path);
  fill_disk();
  const std::string line(LineFile::kMaxWaitingBytes / 4, 'x');
  for (int i = 0; i < 10; ++i) file.add(line);
  engine::set_disk_fault({});
  const Status closed = file.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_NE(closed.error().message.find("lacks 7 lines"), std::string::npos) << closed.error().message;
  EXPECT_EQ(read_text(path).size(), 3 * (line.size() + 1));
}

TEST_F(LineFileTest, AMissingFolderIsAnError) {
  LineFile file(directory.path() + "/none/lines");
  file.add("one");
  EXPECT_FALSE(file.close().ok());
}

TEST_F(LineFileTest, AppendingContinuesAfterWholeLines) {
  const std::string many(10'000, 'x');
  for (const std::string& before : {std::string(), std::string("one\n"), std::string("one\ntwo\n"), many + "\n"})
    for (const std::string& torn : {std::string(), std::string("{\"ste"), many}) {
      write_text(path, before + torn);
      LineFile file(path, LineFile::Mode::kAppend);
      file.add("next");
      ASSERT_TRUE(file.close().ok());
      EXPECT_EQ(read_text(path), before + "next\n");
    }
  std::filesystem::remove(path);
  LineFile file(path, LineFile::Mode::kAppend);
  file.add("first");
  EXPECT_TRUE(file.close().ok());
  EXPECT_EQ(read_text(path), "first\n");
}

TEST_F(LineFileTest, SyncReportsFailures) {
  LineFile file(path);
  file.add("one");
  file.flush();
  EXPECT_TRUE(file.sync().ok());
  engine::set_disk_fault([](engine::DiskCall call) { return call == engine::DiskCall::kFsync ? EIO : 0; });
  const Status failed = file.sync();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "cannot sync " + path + ": " + std::strerror(EIO));
}

// --- metrics are truncated to the step that a run resumes from ---

std::string steps(int first, int last) {
  std::string lines;
  for (int step = first; step <= last; ++step)
    lines += "{\"step\":" + std::to_string(step) + ",\"loss\":0.5,\"wait_seconds\":{\"node-b\":0.25}}\n";
  return lines;
}

TEST_F(LineFileTest, LinesAfterAStepAreRemoved) {
  const auto cut = [&](const std::string& content, std::uint64_t step) {
    write_text(path, content);
    const Status done = truncate_after(path, step);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return read_text(path);
  };
  EXPECT_EQ(cut(steps(1, 20), 12), steps(1, 12));
  EXPECT_EQ(cut(steps(1, 20), 20), steps(1, 20));
  EXPECT_EQ(cut(steps(1, 20), 100), steps(1, 20));
  EXPECT_EQ(cut(steps(1, 20), 0), "");
  EXPECT_EQ(cut("", 5), "");
  EXPECT_EQ(cut(steps(1, 3) + "{\"step\":4,\"lo", 12), steps(1, 3)) << "torn by a crash";
  EXPECT_EQ(cut(steps(1, 3) + "{\"step\":4", 3), steps(1, 3));
  EXPECT_EQ(cut(steps(1, 3) + "odd\n" + steps(4, 6), 5), steps(1, 3) + "odd\n" + steps(4, 5));
  const std::string large = steps(1, 60'000);
  EXPECT_EQ(cut(large + steps(60'001, 60'500), 60'000), large) << "more than fits the buffer";
  std::filesystem::remove(path);
  EXPECT_TRUE(truncate_after(path, 5).ok()) << "no metrics, nothing to cut";
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(LineFileTest, AFailedTruncationLeavesTheFile) {
  write_text(path, steps(1, 20));
  for (const engine::DiskCall fails :
       {engine::DiskCall::kOpen, engine::DiskCall::kWrite, engine::DiskCall::kFsync, engine::DiskCall::kRename}) {
    engine::set_disk_fault([fails](engine::DiskCall call) { return call == fails ? ENOSPC : 0; });
    EXPECT_FALSE(truncate_after(path, 12).ok());
    engine::set_disk_fault({});
    EXPECT_EQ(read_text(path), steps(1, 20));
  }
  // Without lines to remove no space is needed.
  fill_disk();
  EXPECT_TRUE(truncate_after(path, 20).ok());
}

TEST_F(LineFileTest, ATruncatedFileContinuesWithoutGapsOrDuplicates) {
  write_text(path, steps(1, 20) + "{\"st");
  ASSERT_TRUE(truncate_after(path, 12).ok());
  LineFile file(path, LineFile::Mode::kAppend);
  for (int step = 13; step <= 30; ++step) {
    const std::string line = steps(step, step);
    file.add(line.substr(0, line.size() - 1));
  }
  ASSERT_TRUE(file.close().ok());
  EXPECT_EQ(read_text(path), steps(1, 30));
}

}  // namespace
}  // namespace tg::daemon

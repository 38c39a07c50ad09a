// A log's reader that stalls, ends or has no room: a writer never waits, and lost lines are counted and reported.
#include "kernels/base/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

#include "tests/elapsed.h"

namespace tg {
namespace {

std::string note(std::uint64_t lost) { return "lost " + std::to_string(lost); }

class TemporaryFolder {
 public:
  TemporaryFolder() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/tgd-test-XXXXXX";
};

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = ends[0];
    writer_ = ends[1];
    EXPECT_GE(::fcntl(writer_, F_SETPIPE_SZ, kPipeBytes), 0);
  }
  ~LineWriterTest() override {
    if (reader_ >= 0) ::close(reader_);
    if (writer_ >= 0) ::close(writer_);
  }
  // Fills the pipe to the last byte.
  void stall() {
    const std::string full(kPipeBytes - 1, '.');
    EXPECT_EQ(::write(writer_, (full + "\n").data(), kPipeBytes), kPipeBytes);
  }
  // Everything up to and with this line; "" if the pipe ends before.
  std::string read_until(const std::string& line) {
    std::string text;
    while (text.find(line + "\n") == std::string::npos) {
      std::array<char, 4096> some{};
      const ssize_t got = ::read(reader_, some.data(), some.size());
      if (got <= 0) return "";
      text.append(some.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

  static constexpr int kPipeBytes = 4096;
  int reader_ = -1, writer_ = -1;
};

TEST_F(LineWriterTest, WritesLinesInOrder) {
  LineWriter lines(writer_, note);
  lines.write("one");
  lines.write("two");
  EXPECT_EQ(read_until("two"), "one\ntwo\n");
}

TEST_F(LineWriterTest, AWriterWithoutAReaderDoesNotWait) {
  stall();
  LineWriter lines(writer_, note);
  const std::string line(1023, 'x');
  const Elapsed elapsed;
  for (int i = 0; i < 1000; ++i) lines.write(line);
  EXPECT_LT(elapsed.ms(), 2000u);
  // The reader takes lines again: those that did not fit are reported where they are missing.
  const std::string text = read_until("lost " + std::to_string(1000 - LineWriter::kMaxQueuedBytes / line.size()));
  EXPECT_EQ(text.substr(static_cast<std::size_t>(kPipeBytes)).substr(0, line.size() + 1), line + "\n");
  lines.write("after");
  EXPECT_EQ(read_until("after"), "after\n");
}

TEST_F(LineWriterTest, TheEndDoesNotWaitForAStalledReader) {
  stall();
  const Elapsed elapsed;
  {
    LineWriter lines(writer_, note);
    lines.write("never read");
  }
  EXPECT_LT(std::chrono::milliseconds(elapsed.ms()), LineWriter::kLastPatience + std::chrono::seconds(2));
  read_until("never read");  // the thread that was left behind ends
}

TEST_F(LineWriterTest, TheEndWritesQueuedLines) {
  {
    LineWriter lines(writer_, note);
    for (int i = 0; i < 100; ++i) lines.write("line " + std::to_string(i));
  }
  EXPECT_NE(read_until("line 99"), "");
}

// A named pipe has readers again after the last one has gone.
TEST_F(LineWriterTest, AReaderThatLeavesCostsLinesAndMayComeBack) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto attach = [&] {
    ::close(reader_);
    reader_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_EQ(::fcntl(reader_, F_SETFL, 0), 0);
  };
  attach();
  ::close(std::exchange(writer_,
                        ::open(path.c_str(), O_WRONLY | O_CLOEXEC)));  // the reader waits for lines, not for its end
  LineWriter lines(path, note);
  lines.write("heard");
  EXPECT_EQ(read_until("heard"), "heard\n");
  ::close(std::exchange(reader_, -1));
  for (int i = 0; i < 3; ++i) lines.write("late");
  attach();
  lines.write("again");
  // Some of the three may have reached the returned reader; all others are counted.
  std::uint64_t told = 0;
  std::istringstream text(read_until("again"));
  for (std::string line; std::getline(text, line);) {
    if (line == "late") ++told;
    if (line.starts_with("lost ")) told += std::stoull(line.substr(5));
  }
  EXPECT_EQ(told, 3U);
}

TEST_F(LineWriterTest, AFullDiskCostsLinesAndNoTime) {
  const Elapsed elapsed;
  {
    LineWriter lines("/dev/full", note);
    for (int i = 0; i < 100; ++i) lines.write("nowhere");
  }
  EXPECT_LT(std::chrono::milliseconds(elapsed.ms()), LineWriter::kLastPatience);
}

TEST_F(LineWriterTest, AppendsToAFileThatItMakes) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  for (const char* line : {"one", "two"}) LineWriter(path, note).write(line);
  ::close(reader_);
  reader_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read_until("two"), "one\ntwo\n");
}

}  // namespace
}  // namespace tg

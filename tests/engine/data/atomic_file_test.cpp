// What a crash or a full disk leaves of a checkpoint: the old one or the new one, whole.
#include "engine/storage/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "tests/engine/data/support.h"
#include "tests/engine/safetensors_files.h"

namespace tg::engine::test {
namespace {

constexpr std::size_t kElements = 64 * 1024;

Status write_step(const std::string& path, int step) {
  const std::vector<float> values(kElements, static_cast<float>(step));
  return write_safetensors(path, std::vector{tensor("w", {static_cast<std::int64_t>(kElements)}, values)},
                           {{"step", std::to_string(step)}});
}

// The step of a checkpoint that is whole, or -1.
int whole_step(const std::string& path) {
  const auto loaded = read_safetensors(path);
  if (!loaded) return -1;
  const int step = std::stoi(loaded->metadata.at("step"));
  const auto& values = loaded->values.at("w");
  const auto expected = static_cast<float>(step);
  return values.size() == kElements && std::ranges::count(values, expected) == std::ssize(values) ? step : -1;
}

TEST(AtomicFile, ReplacesWholeAndLeavesNothingBehind) {
  const Folder folder;
  const std::string path = folder / "state";
  ASSERT_TRUE(write_file_atomically(path, "a long old content").ok());
  write_plain(path + ".partial", Bytes(100, 'x'));  // as a crash would leave it
  ASSERT_TRUE(write_file_atomically(path, "new").ok());
  EXPECT_EQ(read_plain(path), (Bytes{'n', 'e', 'w'}));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(AtomicFile, FailureKeepsTheOldContentAndNamesTheCause) {
  const Folder folder;
  const Status missing = write_file_atomically(folder / "no/such", "x");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kIo);
  expect_text(missing.error().message, folder / "no/such");
  expect_text(missing.error().message, "No such file");
  std::filesystem::create_directories(folder / "taken/inside");  // rename onto a full directory fails
  EXPECT_FALSE(write_file_atomically(folder / "taken", "x").ok());
  EXPECT_TRUE(std::filesystem::exists(folder / "taken/inside"));
  EXPECT_FALSE(std::filesystem::exists(folder / "taken.partial"));
}

// A child writes steps 1, 2, ... and is killed some time into the write after the one that it reported last.
TEST(AtomicFile, KilledWriterLeavesAWholeCheckpoint) {
  const Folder folder;
  const std::string path = folder / "c.safetensors";
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int step = 1;; ++step) {
        if (!write_step(path, step).ok() || ::write(pipe_ends[1], &step, sizeof step) != sizeof step) ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    int told = 0;
    for (std::uint32_t reads = 1 + random() % 4; reads > 0; --reads) {
      ASSERT_EQ(::read(pipe_ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
    }
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(pipe_ends[0]);
    ASSERT_GE(whole_step(path), told) << "round " << round;
  }
}

// A file-size limit stands for the full disk: write fails in the middle of the data.
TEST(AtomicFile, FullDiskKeepsTheOldCheckpoint) {
  const Folder folder;
  const std::string path = folder / "c.safetensors";
  ASSERT_TRUE(write_step(path, 7).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kElements, kElements};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    const Status status = write_step(path, 8);
    ::_exit(!status.ok() && status.error().kind == ErrorKind::kIo ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0) << "the writer did not report the failed write";
  EXPECT_EQ(whole_step(path), 7);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

}  // namespace
}  // namespace tg::engine::test

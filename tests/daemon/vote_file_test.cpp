// A vote is read from the disk as it was written, or not at all.
#include "daemon/store/vote_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/daemon/temporary_directory.h"

namespace tg::daemon {
namespace {

VoterState sample() {
  schema::NextView view{.number = 3,
                        .members = {{0, 1, 1, 11, 0xffffffffffffffff}, {2, 3, 1000, 22, 5}},
                        .start = 812,
                        .waits = true,
                        .why = "node-b was shut down",
                        .names = {"node-a", "node-b", "node-c"}};
  schema::NextView accepted = view;
  accepted.number = 4;
  accepted.members.pop_back();
  return {.run_key = 0xfedcba9876543210, .view = view, .promised = {7, 2}, .accepted_in = {6, 0}, .accepted = accepted};
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(VoteFile, IsReadAsItWasWritten) {
  const tests::TemporaryDirectory run;
  EXPECT_EQ(read_vote(run.path()).error().kind, ErrorKind::kNotFound);
  for (const VoterState& vote : {sample(), VoterState{}}) {
    ASSERT_TRUE(write_vote(run.path(), vote).ok());
    const Result<VoterState> read = read_vote(run.path());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, vote);
  }
}

TEST(VoteFile, AnyCutOrFlipIsRefused) {
  const tests::TemporaryDirectory run;
  ASSERT_TRUE(write_vote(run.path(), sample()).ok());
  const std::string path = run.path() + "/" + kVoteFile, whole = content_of(path);
  const auto refused = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    const Result<VoterState> read = read_vote(run.path());
    return !read.ok() && read.error().kind == ErrorKind::kCorrupt &&
           read.error().message.starts_with(path + " is damaged: ");
  };
  const std::size_t words = whole.find("  "), padded = whole.size() - 100;
  for (std::size_t i = 0; i < whole.size(); i += i < words || i >= padded ? 1 : 97) {
    EXPECT_TRUE(refused(whole.substr(0, i))) << i;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_TRUE(refused(flipped)) << i;
  }
  EXPECT_TRUE(refused(whole + "x"));
  EXPECT_TRUE(refused(std::string(300'000, 'x')));
}

// Two files that are exchanged, each as long as the vote: even on a full disk the next vote has its space.
TEST(VoteFile, TheNextOneNeedsNoSpace) {
  const tests::TemporaryDirectory run;
  ASSERT_TRUE(write_vote(run.path(), VoterState{}).ok());
  const auto files = [&] {
    std::map<ino_t, blkcnt_t> found;
    for (const auto& entry : std::filesystem::directory_iterator(run.path())) {
      struct stat file {};
      EXPECT_EQ(stat(entry.path().c_str(), &file), 0);
      found[file.st_ino] = file.st_blocks;
    }
    return found;
  };
  const auto before = files();
  EXPECT_EQ(before.size(), 2U);
  for (const VoterState& vote : {sample(), VoterState{}, sample()}) {
    ASSERT_TRUE(write_vote(run.path(), vote).ok());
    EXPECT_EQ(read_vote(run.path()).value(), vote);
    EXPECT_EQ(files(), before);
  }
}

TEST(VoteFile, AFailedWriteIsNamed) {
  const Status written = write_vote("/proc/nowhere", sample());
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("/proc/nowhere/vote"), std::string::npos) << written.error().message;
}

}  // namespace
}  // namespace tg::daemon

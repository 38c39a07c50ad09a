// Names of checkpoints, and which ones are kept.
#include "daemon/store/checkpoints.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "engine/storage/disk_fault.h"
#include "engine/storage/safetensors.h"
#include "state_samples.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using schema::StateId;
using tests::facts_at;
using tests::state_at;

constexpr StateId kFromTheBeginning{};

class CheckpointsTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }
  Status write(std::uint32_t lineage, std::uint64_t step, const StateId& from = kFromTheBeginning) {
    const StateFacts facts = facts_at(step, lineage);
    return write_checkpoint(directory.path(), facts.id, from, state_at(facts));
  }
  // "lineage:step lineage:step", newest first.
  std::string left() const {
    std::string text;
    for (const std::string& name : checkpoints_in(directory.path())) {
      const StateId id = *state_of_checkpoint(name);
      text += (text.empty() ? "" : " ") + std::to_string(id.lineage) + ":" + std::to_string(id.step);
    }
    return text;
  }

  tests::TemporaryDirectory directory;
};

TEST_F(CheckpointsTest, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ(checkpoint_name({2, 3, 400, 5}), "checkpoint-000002-000003-0000000400.safetensors");
  for (const StateId id : {StateId{1, 1, 0, 0}, StateId{2, 3, 400, 0}, StateId{4'000'000'000, 7, ~0ULL, 0}})
    EXPECT_EQ(state_of_checkpoint(checkpoint_name(id)), id);
  EXPECT_EQ(state_of_checkpoint("checkpoint-0000000030.safetensors"), (StateId{1, 1, 30, 0})) << "the version before";
  for (const char* name :
       {"checkpoint-30.safetensors", "checkpoint-1-1-30.safetensors", "checkpoint-000001-0000000030.safetensors",
        "checkpoint-000001-000001-0000000030.safetensors.partial", "checkpoint-.safetensors", "checkpoint.safetensors",
        "checkpoint-000001-000001-0000000030-0.safetensors", "checkpoint-000001-000001-.safetensors",
        "checkpoint-4294967297-000001-0000000030.safetensors", "checkpoint--00001-000001-0000000030.safetensors",
        "checkpoint-safetensors", "state.safetensors", ""})
    EXPECT_FALSE(state_of_checkpoint(name).has_value()) << name;
}

TEST_F(CheckpointsTest, TheTwoNewestStay) {
  for (const std::uint64_t step : {10, 20, 30}) ASSERT_TRUE(write(1, step).ok());
  EXPECT_EQ(left(), "1:30 1:20");
  ASSERT_TRUE(
      engine::write_image(directory.path() + "/checkpoint-0000000040.safetensors", state_at(facts_at(40))).ok());
  EXPECT_EQ(left(), "1:40 1:30 1:20") << "a name of the version before is one of lineage 1";
  ASSERT_TRUE(write(1, 50).ok());
  EXPECT_EQ(left(), "1:50 1:40");
  delete_checkpoints(directory.path());
  EXPECT_EQ(left(), "");
}

// The run was resumed from step 500 while 800 existed. Until every member has written 600, all resume from 500.
TEST_F(CheckpointsTest, GoingBackDeletesNoCheckpointThatIsNeeded) {
  ASSERT_TRUE(write(1, 500).ok());
  ASSERT_TRUE(write(1, 800).ok());
  const StateId from = facts_at(500).id;
  ASSERT_TRUE(write(2, 600, from).ok());
  EXPECT_EQ(left(), "2:600 1:500");
  ASSERT_TRUE(write(2, 700, from).ok());
  EXPECT_EQ(left(), "2:700 2:600");
  // And back once more, to before that lineage.
  ASSERT_TRUE(write(3, 100, facts_at(50).id).ok());
  EXPECT_EQ(left(), "3:100 2:700") << "there is no other one on the line";
  ASSERT_TRUE(write(3, 200, facts_at(50).id).ok());
  EXPECT_EQ(left(), "3:200 3:100");
}

TEST_F(CheckpointsTest, AFailedWriteLeavesTheOthers) {
  ASSERT_TRUE(write(1, 10).ok());
  ASSERT_TRUE(write(1, 20).ok());
  for (const engine::DiskCall fails :
       {engine::DiskCall::kOpen, engine::DiskCall::kWrite, engine::DiskCall::kFsync, engine::DiskCall::kRename}) {
    engine::set_disk_fault([fails](engine::DiskCall call) { return call == fails ? ENOSPC : 0; });
    const Status written = write(1, 30);
    engine::set_disk_fault({});
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find("checkpoint-000001-000001-0000000030"), std::string::npos);
    EXPECT_NE(written.error().message.find("No space left"), std::string::npos) << written.error().message;
    EXPECT_EQ(left(), "1:20 1:10");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 2) << "no .partial is left";
}

}  // namespace
}  // namespace tg::daemon

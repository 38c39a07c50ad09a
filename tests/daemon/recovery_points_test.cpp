// The states from which a run can be resumed: whole, and on its branch of history. Others are rejected with a reason.
#include "daemon/store/recovery_points.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/store/checkpoints.h"
#include "daemon/store/saved_arrays.h"
#include "engine/storage/disk_fault.h"
#include "engine/storage/safetensors.h"
#include "run_samples.h"
#include "state_samples.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using schema::StateId;
using tests::facts_at;
using tests::read_text;
using tests::state_at;
using tests::write_text;
using Steps = std::vector<std::uint64_t>;
using Lines = std::vector<std::string>;

class RecoveryPointsTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }

  std::string path(const std::string& file) const { return directory.path() + "/" + file; }
  static std::string name(std::uint64_t step, std::uint32_t lineage = 1) {
    return checkpoint_name({lineage, 1, step, 0});
  }
  void put(const StateFacts& facts) { put(facts, checkpoint_name(facts.id)); }
  void put(const StateFacts& facts, const std::string& file) {
    ASSERT_TRUE(engine::write_image(path(file), state_at(facts)).ok());
  }
  RecoveryPoints found() const { return recovery_points_in(directory.path(), record); }
  Steps steps() const {
    Steps all;
    for (const RecoveryPoint& state : found().states) all.push_back(state.id.step);
    return all;
  }
  // Sets the record to this lineage, which began with that state.
  void begin_lineage(std::uint32_t lineage, std::uint64_t key, const StateId& from) {
    ASSERT_TRUE(add_interval(path(kViewsFile), interval_of(record)).ok());
    record.status.lineage = lineage;
    record.key = key;
    record.from = from;
  }

  tests::TemporaryDirectory directory;
  RunRecord record = [] {
    RunRecord made = tests::sample_record("run-1");
    made.key = 77;
    return made;
  }();
};

TEST_F(RecoveryPointsTest, CheckpointsAndTheFinalStateNewestFirst) {
  for (const std::uint64_t step : {20, 10}) put(facts_at(step));
  put(facts_at(25), kStateFile);
  const RecoveryPoints all = found();
  EXPECT_EQ(all.rejected, Lines{});
  ASSERT_EQ(all.states.size(), 3u);
  EXPECT_EQ(all.states[0].id, facts_at(25).id);
  EXPECT_EQ(all.states[0].file, kStateFile);
  EXPECT_TRUE(all.states[0].end);
  EXPECT_EQ(all.states[1].file, name(20));
  EXPECT_FALSE(all.states[1].end);
  EXPECT_EQ(all.states[1].facts.spec, facts_at(20).spec);
  EXPECT_EQ(all.states[1].facts.counters.loss, facts_at(20).counters.loss);
  EXPECT_EQ(recovery_steps(directory.path(), record), (Steps{25, 20, 10}));
  put(facts_at(25));
  EXPECT_EQ(steps(), (Steps{25, 20, 10})) << "one state twice is one state";
}

TEST_F(RecoveryPointsTest, FilesOfThePreviousVersionAreLineageOne) {
  ASSERT_TRUE(engine::write_image(path("checkpoint-0000000010.safetensors"), tests::old_state_at(10)).ok());
  ASSERT_TRUE(engine::write_image(path(kStateFile), tests::old_state_at(12)).ok());
  const RecoveryPoints all = found();
  EXPECT_EQ(all.rejected, Lines{});
  ASSERT_EQ(all.states.size(), 2u);
  EXPECT_EQ(all.states[1].id, (StateId{1, 1, 10, 0xab}));
  EXPECT_EQ(all.states[1].facts.key, 0u);
  ASSERT_TRUE(engine::write_image(path(name(14)), tests::old_state_at(14, "run-2")).ok());
  EXPECT_EQ(found().rejected, Lines{name(14) + " belongs to another run, run-2"});
}

TEST_F(RecoveryPointsTest, EveryDamageIsReportedAndTheOthersStay) {
  put(facts_at(10));
  const std::string good = read_text(path(name(10)));
  const auto refusal = [&](const std::string& content) {
    write_text(path(name(20)), content);
    const RecoveryPoints all = found();
    EXPECT_EQ(steps(), Steps{10});
    return all.rejected.size() == 1 ? all.rejected[0] : std::to_string(all.rejected.size()) + " lines";
  };
  EXPECT_EQ(refusal(good), name(20) + " has another state than its name says: lineage 1, view 1, step 10");
  put(facts_at(20));
  const std::string whole = read_text(path(name(20)));
  EXPECT_EQ(refusal(""), name(20) + " is damaged: it is too short for a safetensors file; fetch it again or use an " +
                             "older checkpoint");
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97)
    EXPECT_TRUE(refusal(whole.substr(0, length)).starts_with(name(20) + " is damaged: ")) << length;
  EXPECT_TRUE(refusal(whole + "more").starts_with(name(20) + " is damaged: "));
  EXPECT_TRUE(refusal(std::string(whole.size(), '\0')).starts_with(name(20) + " is damaged: "));
  std::string flipped = whole;
  flipped.back() ^= 1;
  EXPECT_EQ(refusal(flipped),
            name(20) + " is damaged: its values have another hash than they had when they were written");
  std::string other_digest = whole;
  other_digest.replace(whole.find("000000000000ab14"), 16, "000000000000ab15");
  EXPECT_EQ(refusal(other_digest),
            name(20) + " is damaged: its header has another hash than it had when it was written");
}

// Any bit of the file, its header included.
TEST_F(RecoveryPointsTest, NoFlippedBitPasses) {
  put(facts_at(20));
  const std::string whole = read_text(path(name(20)));
  std::size_t passed = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    write_text(path(name(20)), flipped);
    const RecoveryPoints all = found();
    if (all.states.empty() && all.rejected.size() == 1) continue;
    ++passed;
    ADD_FAILURE() << "byte " << at << " of " << whole.size();
  }
  EXPECT_EQ(passed, 0u);
}

TEST_F(RecoveryPointsTest, FilesOfOtherRunsAreRejected) {
  put(facts_at(10, 1, 77, "run-2"));
  put(facts_at(20, 1, 78));
  put(facts_at(30, 2));
  put(facts_at(40));
  write_text(path(name(50) + ".partial"), "cut off");
  EXPECT_EQ(steps(), Steps{40});
  EXPECT_EQ(
      found().rejected,
      (Lines{name(30, 2) + " belongs to lineage 2, which this node's record of the run does not know",
             name(20) + " has another key for lineage 1 than this node's record of the run",
             name(10) + " belongs to another run, run-2", name(50) + ".partial was abandoned while it was written"}));
}

TEST_F(RecoveryPointsTest, AFolderIsNotAState) {
  put(facts_at(40));
  std::filesystem::create_directories(path(name(50)));
  EXPECT_EQ(steps(), Steps{40});
  ASSERT_EQ(found().rejected.size(), 1u);
  EXPECT_TRUE(found().rejected[0].starts_with(name(50) + " cannot be read: ")) << found().rejected[0];
  EXPECT_EQ(recovery_points_in(directory.path() + "/none", record).states.size(), 0u);
}

TEST_F(RecoveryPointsTest, StatesAfterAnEarlierResumeAreGivenUp) {
  for (const std::uint64_t step : {400, 500, 800}) put(facts_at(step));
  begin_lineage(2, 78, facts_at(500).id);
  EXPECT_EQ(steps(), (Steps{500, 400}));
  EXPECT_EQ(found().rejected, Lines{name(800) + " was given up when the run was resumed from an earlier state"});
  put(facts_at(600, 2, 78));
  EXPECT_EQ(steps(), (Steps{600, 500, 400}));
  EXPECT_EQ(recovery_steps(directory.path(), record), (Steps{600, 500, 400}));
  // Back to before the second lineage, which is over.
  begin_lineage(3, 79, facts_at(400).id);
  put(facts_at(450, 3, 79));
  EXPECT_EQ(steps(), (Steps{450, 400}));
  // And a fourth lineage that begins with the newest state of the third.
  begin_lineage(4, 80, facts_at(450, 3, 79).id);
  EXPECT_EQ(steps(), (Steps{450, 400}));
  std::filesystem::remove(path(kViewsFile));
  EXPECT_EQ(steps(), Steps{}) << "without its past nobody knows the lineages' keys";
}

TEST_F(RecoveryPointsTest, AStateIsOpenedByItsId) {
  for (const std::uint64_t step : {10, 20}) put(facts_at(step));
  put(facts_at(25), kStateFile);
  for (const std::uint64_t step : {10, 20, 25}) {
    const Result<StateFile> file = open_state(directory.path(), facts_at(step).id);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const Result<StateArrays> arrays = arrays_in(*file, tests::small_model(), 0, false);
    ASSERT_TRUE(arrays.ok()) << arrays.error().message;
    std::vector<float> values(tests::small_model().segments.padded_count(), -1);
    ASSERT_TRUE(arrays->parameters(0, values).ok());
    EXPECT_EQ(values[2], static_cast<float>(step));
    EXPECT_EQ(std::ranges::count(values, 0.0F), std::ssize(values) - 3) << "padding is 0";
  }
  StateId other = facts_at(20).id;
  ++other.digest;
  const Result<StateFile> none = open_state(directory.path(), other);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(none.error().message, directory.path() + " has no state of step 20 of lineage 1 any more");
  write_text(path(name(20)), "x");
  EXPECT_NE(open_state(directory.path(), facts_at(20).id).error().message.find("damaged"), std::string::npos);
}

TEST_F(RecoveryPointsTest, TheNewestWholeOneIsFoundWithoutReadingOthers) {
  EXPECT_FALSE(newest_recovery_point(directory.path(), record).has_value());
  for (const std::uint64_t step : {10, 20}) put(facts_at(step));
  put(facts_at(15), kStateFile);
  EXPECT_EQ(newest_recovery_point(directory.path(), record)->file, name(20));
  std::string flipped = read_text(path(name(20)));
  flipped.back() ^= 1;
  write_text(path(name(20)), flipped);
  EXPECT_EQ(newest_recovery_point(directory.path(), record)->file, kStateFile);
}

TEST_F(RecoveryPointsTest, ProgressIsReported) {
  for (const std::uint64_t step : {10, 20}) put(facts_at(step));
  int told = 0;
  recovery_points_in(directory.path(), record, [&] { ++told; });
  EXPECT_GE(told, 2);
  struct Abandoned {};
  EXPECT_THROW(recovery_points_in(directory.path(), record, [] { throw Abandoned(); }), Abandoned);
}

// A writer that is killed at any of its calls leaves earlier files as they were, and its own whole or not at all.
TEST_F(RecoveryPointsTest, AKillAtAnyCallOfAWriterLeavesWholeFiles) {
  put(facts_at(10));
  put(facts_at(20));
  for (int calls = 1;; ++calls) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      engine::set_disk_fault([left = calls](engine::DiskCall) mutable {
        if (--left == 0) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      const StateFacts facts = facts_at(30);
      ::_exit(write_checkpoint(directory.path(), facts.id, {}, state_at(facts)).ok() ? 0 : 1);
    }
    int result = -1;
    ASSERT_EQ(::waitpid(child, &result, 0), child);
    if (!WIFSIGNALED(result)) {
      EXPECT_EQ(result, 0);
      EXPECT_GT(calls, 4) << "it opens, writes, syncs, renames and syncs the folder";
      EXPECT_EQ(steps(), (Steps{30, 20}));
      break;
    }
    const RecoveryPoints all = found();
    EXPECT_EQ(all.states.back().id.step, 10u);
    EXPECT_TRUE(all.states.size() == 2 || all.states.front().id.step == 30) << calls;
    for (const std::string& line : all.rejected)
      EXPECT_EQ(line, name(30) + ".partial was abandoned while it was written");
  }
}

}  // namespace
}  // namespace tg::daemon

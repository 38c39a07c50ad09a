#include "daemon/store/run_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "daemon/store/checkpoints.h"
#include "engine/storage/disk_fault.h"
#include "kernels/base/log.h"
#include "run_samples.h"
#include "schema/limits.h"
#include "state_samples.h"
#include "temporary_directory.h"
#include "tests/engine/safetensors_files.h"

namespace tg::daemon {
namespace {

using schema::RunState;
using tests::facts_at;
using tests::read_text;
using tests::sample_record;
using tests::state_at;
using tests::TemporaryDirectory;
using tests::write_text;

class RunStoreTest : public testing::Test {
 protected:
  void open(const std::string& node = "node-a") {
    warnings.clear();
    store.reset();
    auto opened = RunStore::open(directory.path(), node, warnings);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store = std::move(*opened);
  }
  std::string run_file(const std::string& id, const std::string& file) {
    return directory.path() + "/runs/" + id + "/" + file;
  }

  TemporaryDirectory directory;
  std::vector<std::string> warnings;
  std::unique_ptr<RunStore> store;
};

TEST_F(RunStoreTest, ARunPersists) {
  open();
  EXPECT_FALSE(store->exists("run-1"));
  ASSERT_TRUE(store->write(sample_record("run-1", "node-a", RunState::kCompleted)).ok());
  EXPECT_TRUE(store->exists("run-1"));
  open();
  EXPECT_TRUE(warnings.empty());
  ASSERT_TRUE(store->find("run-1").has_value());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kCompleted);
  EXPECT_EQ(store->find("run-1")->status.digest, 0xabcdef0123456789u);
  EXPECT_EQ(store->find("run-1")->status.reason, "a \"reason\"");
}

TEST_F(RunStoreTest, ARunInterruptedByACrashStaysInterrupted) {
  open();
  for (const RunState state :
       {RunState::kPending, RunState::kStarting, RunState::kRunning, RunState::kStopping, RunState::kPaused}) {
    ASSERT_TRUE(store->write(sample_record("run-" + std::to_string(static_cast<int>(state)), "node-a", state)).ok());
  }
  const std::int64_t before_ms = unix_time_ms();
  open();
  EXPECT_TRUE(warnings.empty());
  const auto cut = store->find("run-2");
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->status.state, RunState::kInterrupted);
  EXPECT_GE(cut->status.since_ms, before_ms);
  EXPECT_NE(cut->status.reason.find("node-a"), std::string::npos) << cut->status.reason;
  EXPECT_NE(cut->status.reason.find("RUNNING"), std::string::npos) << cut->status.reason;
  EXPECT_EQ(cut->status.members.at(0).state, RunState::kInterrupted);
  EXPECT_EQ(cut->status.members.at(0).digest, 0u) << "what it had committed went with it";
  const std::int64_t since_ms = cut->status.since_ms;
  open();
  for (const schema::RunStatus& status : store->statuses())
    EXPECT_EQ(status.state, RunState::kInterrupted) << status.id;
  EXPECT_EQ(store->find("run-2")->status.since_ms, since_ms);
}

TEST_F(RunStoreTest, AStartInterruptedByACrashCannotBeResumed) {
  open();
  RunRecord record;
  record.id = "run-1";
  record.status.state = RunState::kStarting;
  ASSERT_TRUE(store->write(record).ok());
  open();
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kFailed);
  EXPECT_FALSE(std::filesystem::exists(run_file("run-1", "views.jsonl")));
}

// Before and after an upgrade.
TEST_F(RunStoreTest, ARecordOfANewerVersionIsReportedAndLeftAlone) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1", "node-a", RunState::kCompleted)).ok());
  std::string newer = read_text(run_file("run-1", "run.json"));
  const std::string version = "\"schema_version\": 1";
  ASSERT_NE(newer.find(version), std::string::npos) << newer;
  newer.replace(newer.find(version), version.size(), "\"schema_version\": 2");
  write_text(run_file("run-1", "run.json"), newer);
  write_text(run_file("run-1", "model.safetensors"), "of the newer version");
  open();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "run left alone, " + run_file("run-1", "run.json") +
                             ": schema_version is 2, this tgd reads 1; a newer tgd wrote it, and reads it");
  EXPECT_FALSE(store->find("run-1").has_value());
  EXPECT_TRUE(store->exists("run-1")) << "no other run gets this id";
  EXPECT_FALSE(store->remove("run-1").ok());
  store->delete_expired();
  EXPECT_EQ(read_text(run_file("run-1", "run.json")), newer);
  EXPECT_EQ(read_text(run_file("run-1", "model.safetensors")), "of the newer version");
}

TEST_F(RunStoreTest, ARecordOfTheFirstVersionIsRead) {
  write_text(run_file("run-1", "run.json"), R"({
  "schema_version": 1, "id": "run-1", "state": "COMPLETED", "reason": "300 steps", "since": "2017-12-04T09:00:00.123Z",
  "started": "2017-12-04T08:50:00.001Z", "build": "0.1.0+7c3c881", "model": "lenet", "data": "synthetic",
  "exchange": "sharded", "gradients": "ternary", "seed": 7, "view": 1, "step": 300, "steps": 300, "parameters": 1256080,
  "loss": 0.125, "learning_rate": 0.01, "samples_per_second": 1234.5,
  "evaluation": {"step": 300, "accuracy": 0.987, "loss": 0.05},
  "digest": "abcdef0123456789", "digest_step": 300, "initial_digest": "ffffffffffffffff",
  "hashes": {"spec": "8000000000000001", "model": "0000000000000002", "data": "0000000000000003"},
  "traffic": {"code_bits_per_parameter": 1.06, "sent_bits_per_parameter": 5.5, "sent_bytes_per_step": 860000.0, "zeros": 0.93},
  "members": ["node-a", "node-b"],
  "own": {"node": "node-a", "engine_build": "oneDNN 2.6.3", "threads": 2, "kernels": "avx2", "state": "COMPLETED",
          "step": 300, "digest": "abcdef0123456789", "digest_step": 300, "wait_share": 0.1},
  "spec": {"model": "lenet", "steps": "300"}
}
)");
  write_text(run_file("run-1", "model.safetensors"), "its model");
  open();
  EXPECT_EQ(warnings, std::vector<std::string>{});
  const auto record = store->find("run-1");
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->status.state, RunState::kCompleted);
  EXPECT_EQ(record->status.digest, 0xabcdef0123456789u);
  EXPECT_EQ(record->status.evaluation_accuracy, 0.987);
  EXPECT_EQ(store->read_slice("run-1", "model.safetensors", 0, 100)->data, "its model");
}

TEST_F(RunStoreTest, IdsResolveExactlyThenByUniquePrefix) {
  open();
  for (const char* id : {"abc", "abcd", "xyz"}) ASSERT_TRUE(store->write(sample_record(id)).ok());
  EXPECT_EQ(*store->resolve("abc"), "abc");
  EXPECT_EQ(*store->resolve("abcd"), "abcd");
  EXPECT_EQ(*store->resolve("x"), "xyz");
  EXPECT_EQ(store->resolve("a").error().kind, ErrorKind::kUsage);
  EXPECT_NE(store->resolve("ab").error().message.find("abc and abcd"), std::string::npos);
  EXPECT_EQ(store->resolve("abd").error().kind, ErrorKind::kNotFound);
  EXPECT_NE(store->resolve("abd").error().message.find("'abd'"), std::string::npos);
  EXPECT_EQ(store->resolve("").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(store->resolve("xyzz").error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(store->find("a").has_value());
}

TEST_F(RunStoreTest, DamagedRecordsAreReportedAndLeftAlone) {
  open();
  ASSERT_TRUE(store->write(sample_record("good", "node-a", RunState::kStopped)).ok());
  write_text(run_file("cut", "run.json"), read_text(run_file("good", "run.json")).substr(0, 100));
  write_text(run_file("empty", "run.json"), "");
  write_text(run_file("moved", "run.json"), read_text(run_file("good", "run.json")));
  write_text(run_file("huge", "run.json"), std::string(2 * schema::kMaxRecordBytes, ' '));
  write_text(run_file("none", "log.txt"), "a line\n");
  std::filesystem::create_directories(run_file("folder", "run.json"));
  const std::string cut = read_text(run_file("cut", "run.json"));
  open();
  ASSERT_EQ(store->statuses().size(), 1u);
  EXPECT_EQ(store->statuses()[0].id, "good");
  EXPECT_EQ(warnings.size(), 6u);
  for (const char* id : {"cut", "empty", "moved", "huge", "none", "folder"}) {
    const bool named = std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
      return warning.find("/" + std::string(id) + "/") != std::string::npos;
    });
    EXPECT_TRUE(named) << id;
    EXPECT_TRUE(store->exists(id)) << "an id whose directory is taken must not be drawn again: " << id;
  }
  EXPECT_EQ(read_text(run_file("cut", "run.json")), cut);
}

TEST_F(RunStoreTest, AnotherNodesStateIsRefused) {
  open("node-b");
  ASSERT_TRUE(store->write(sample_record("run-1", "node-b")).ok());
  open("node-a");
  EXPECT_TRUE(store->statuses().empty());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("'node-b', this is node-a"), std::string::npos) << warnings[0];
  open("node-b");
  EXPECT_EQ(store->statuses().size(), 1u);
}

TEST_F(RunStoreTest, OneProcessPerStateDir) {
  open();
  std::vector<std::string> more;
  const auto second = RunStore::open(directory.path(), "node-a", more);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
  EXPECT_NE(second.error().message.find(directory.path()), std::string::npos);
}

TEST_F(RunStoreTest, AStateDirThatCannotBeMadeIsAnError) {
  write_text(directory.path() + "/file", "");
  const auto opened = RunStore::open(directory.path() + "/file/state", "node-a", warnings);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::kIo);
  EXPECT_NE(opened.error().message.find("state-dir"), std::string::npos);
}

TEST_F(RunStoreTest, NoPathLeavesTheRunsDirectory) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1")).ok());
  write_text(directory.path() + "/secret", "secret");
  write_text(run_file("run-1", "other"), "secret");
  std::filesystem::create_symlink(directory.path() + "/secret", run_file("run-1", "model.safetensors"));
  for (const char* file : {"../../secret", "other", "/etc/passwd", "", ".", "..", "run.json/../other", "run.json "}) {
    const auto slice = store->read_slice("run-1", file, 0, 100);
    ASSERT_FALSE(slice.ok()) << file;
    EXPECT_EQ(slice.error().kind, ErrorKind::kNotFound) << file;
  }
  EXPECT_EQ(store->read_slice("run-1", "model.safetensors", 0, 100).error().kind, ErrorKind::kIo);
  for (const char* id : {"..", "../runs/run-1", "", "run-1/"})
    EXPECT_FALSE(store->read_slice(id, "run.json", 0, 9).ok());
  for (const char* id : {"..", ".hidden", "a/b", "", "a b", "-x"}) {
    EXPECT_FALSE(store->write(sample_record(id)).ok()) << id;
    EXPECT_FALSE(store->exists(id)) << id;
  }
  EXPECT_FALSE(store->write(sample_record(std::string(schema::kMaxRunIdBytes + 1, 'a'))).ok());
}

TEST_F(RunStoreTest, SlicesAddUpToTheFile) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1", "node-a", RunState::kCompleted)).ok());
  std::string content;
  for (int i = 0; i < 2500; ++i) content += static_cast<char>(i * 31);
  write_text(run_file("run-1", "model.safetensors"), content);
  std::string read;
  bool final = false;
  for (int slices = 0; slices < 3; ++slices) {
    EXPECT_FALSE(final);
    const auto slice = store->read_slice("run", "model.safetensors", read.size(), 1000);
    ASSERT_TRUE(slice.ok()) << slice.error().message;
    EXPECT_EQ(slice->run_id, "run-1");
    EXPECT_EQ(slice->node, "node-a");
    EXPECT_EQ(slice->total_bytes, 2500u);
    read += slice->data;
    final = slice->final;
  }
  EXPECT_TRUE(final);
  EXPECT_EQ(read, content);
  const auto beyond = store->read_slice("run-1", "model.safetensors", ~std::uint64_t{0}, 1000);
  ASSERT_TRUE(beyond.ok());
  EXPECT_TRUE(beyond->data.empty());
  EXPECT_TRUE(beyond->final);
}

TEST_F(RunStoreTest, ALogIsFinalOnlyWhenItsRunIs) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1")).ok());
  const auto nothing = store->read_slice("run-1", "log.txt", 0, 100);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->total_bytes, 0u);
  EXPECT_FALSE(nothing->final);
  write_text(run_file("run-1", "log.txt"), "one line\n");
  EXPECT_FALSE(store->read_slice("run-1", "log.txt", 0, 100)->final);
  ASSERT_TRUE(store->write(sample_record("run-1", "node-a", RunState::kStopped)).ok());
  EXPECT_TRUE(store->read_slice("run-1", "log.txt", 0, 100)->final);
  EXPECT_FALSE(store->read_slice("run-1", "log.txt", 0, 3)->final);
  const auto missing = store->read_slice("run-1", "model.safetensors", 0, 100);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message.find("STOPPED"), std::string::npos) << missing.error().message;
}

TEST_F(RunStoreTest, TheNewestFinishedRunsAreKept) {
  const std::size_t more = 2 * schema::kMaxRunsKept, oldest = schema::kMaxRunsKept;
  const auto put = [&](RunRecord record, std::int64_t started_ms) {
    record.status.started_ms = record.status.since_ms = started_ms;
    write_text(run_file(record.id, "run.json"), record_to_json(record));  // like write(), without 200 fsyncs
  };
  for (std::size_t i = 0; i + 1 < more; ++i) {
    put(sample_record("run-" + std::to_string(i), "node-a", RunState::kCompleted), static_cast<std::int64_t>(1000 + i));
  }
  open();
  EXPECT_EQ(store->statuses().size(), schema::kMaxRunsKept);
  EXPECT_TRUE(store->exists("run-" + std::to_string(oldest - 1)));
  RunRecord live = sample_record("live");
  live.status.started_ms = 1;
  ASSERT_TRUE(store->write(live).ok());
  RunRecord last = sample_record("run-" + std::to_string(more - 1), "node-a", RunState::kCompleted);
  last.status.started_ms = last.status.since_ms = static_cast<std::int64_t>(1000 + more);
  ASSERT_TRUE(store->write(last).ok());
  EXPECT_EQ(store->statuses().size(), schema::kMaxRunsKept + 1);
  EXPECT_EQ(store->statuses()[0].id, "run-" + std::to_string(more - 1));
  EXPECT_FALSE(store->exists("run-0"));
  EXPECT_FALSE(store->exists("run-" + std::to_string(oldest - 1)));
  EXPECT_TRUE(store->exists("run-" + std::to_string(oldest)));
  EXPECT_TRUE(store->exists("live")) << "a live run is kept, however old";
}

TEST_F(RunStoreTest, StartsThatNeverBeganDisplaceNoRuns) {
  open();
  ASSERT_TRUE(store->write(sample_record("trained", "node-a", RunState::kCompleted)).ok());
  static_assert(220 > 2 * schema::kMaxUnstartedKept);
  for (int i = 0; i < 220; ++i) {
    RunRecord record;
    record.id = record.status.id = "start-" + std::to_string(1000 + i);
    record.status.state = RunState::kFailed;
    record.status.since_ms = record.status.started_ms = 1'600'000'000'000 + i;
    write_text(run_file(record.id, "run.json"), [&] {
      record.node = "node-a";
      return record_to_json(record);
    }());
  }
  open();
  EXPECT_TRUE(store->exists("trained"));
  EXPECT_TRUE(store->exists("start-1219"));
  EXPECT_EQ(store->statuses().size(), 1 + schema::kMaxUnstartedKept);
  EXPECT_FALSE(store->exists("start-1199"));
  EXPECT_EQ(store->statuses().size(), 1 + schema::kMaxUnstartedKept);
}

TEST_F(RunStoreTest, EveryDeletionIsReported) {
  std::vector<Deletion> told;
  auto opened = RunStore::open(directory.path(), "node-a", warnings,
                               {{1, 0, 0}, [&](const Deletion& deletion) { told.push_back(deletion); }});
  ASSERT_TRUE(opened.ok());
  RunRecord first = sample_record("first", "node-a", RunState::kCompleted);
  first.fetched_ms = 0;
  write_text(run_file("first", "model.safetensors"), "model");
  ASSERT_TRUE((*opened)->write(first).ok());
  EXPECT_TRUE(told.empty());
  RunRecord second = sample_record("second", "node-a", RunState::kCompleted);
  ++second.status.since_ms;
  ASSERT_TRUE((*opened)->write(second).ok());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, "first");
  EXPECT_EQ(told[0].why, "keep-runs = 1");
  EXPECT_TRUE(told[0].unfetched);
  EXPECT_FALSE(std::filesystem::exists(run_file("first", "")));
}

TEST_F(RunStoreTest, ADeletedRunIsGoneAndARunningOneIsNot) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1", "node-a", RunState::kCompleted)).ok());
  ASSERT_TRUE(store->write(sample_record("run-2")).ok());
  write_text(run_file("run-1", "model.safetensors"), std::string(5000, 'm'));
  EXPECT_EQ(store->remove("run-2").error().kind, ErrorKind::kRefused);
  EXPECT_NE(store->remove("run-2").error().message.find("tgctl stop run-2"), std::string::npos);
  EXPECT_EQ(store->remove("run").error().kind, ErrorKind::kNotFound) << "a beginning is not enough";
  EXPECT_EQ(store->remove("run-3").error().kind, ErrorKind::kNotFound);
  const auto freed = store->remove("run-1");
  ASSERT_TRUE(freed.ok()) << freed.error().message;
  EXPECT_GT(*freed, 5000u);
  EXPECT_FALSE(store->exists("run-1"));
  EXPECT_TRUE(std::filesystem::exists(run_file("run-2", "run.json")));
  // A deletion that a crash interrupted is finished at the next start.
  write_text(directory.path() + "/runs/.deleted-run-9/model.safetensors", "half");
  open();
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/runs/.deleted-run-9"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(RunStoreTest, AFetchedRunStaysMarked) {
  open();
  RunRecord record = sample_record("run-1", "node-a", RunState::kCompleted);
  record.fetched_ms = 0;
  ASSERT_TRUE(store->write(record).ok());
  ASSERT_TRUE(store->mark_fetched("run-1").ok());
  EXPECT_EQ(store->mark_fetched("run-2").error().kind, ErrorKind::kNotFound);
  open();
  EXPECT_GT(store->find("run-1")->fetched_ms, 1'700'000'000'000);
}

TEST_F(RunStoreTest, StatusesShowTheLiveRunAndAllItsMembers) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1")).ok());
  schema::RunStatus status = store->find("run-1")->status;
  status.step = 121;
  store->update(status);
  const auto all = store->statuses();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].step, 121u);
  ASSERT_EQ(all[0].members.size(), 3u);
  EXPECT_EQ(all[0].members[0].node, "node-a");
  EXPECT_EQ(all[0].members[0].digest, 0xabcdef0123456789u);
  EXPECT_EQ(all[0].members[2].node, "node-c");
  EXPECT_EQ(all[0].members[2].digest, 0u);
  EXPECT_EQ(all[0].members[2].state, RunState::kRunning);
}

TEST_F(RunStoreTest, AnEndIsShownOnlyWhenAllOfItIsOnDisk) {
  open();
  RunRecord record = sample_record("run-1");
  ASSERT_TRUE(store->write(record).ok());
  record.status.state = record.status.members[0].state = RunState::kCompleted;
  record.status.reason = "";
  record.status.step = 300;
  store->update(record.status);
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kRunning);
  EXPECT_EQ(store->find("run-1")->status.members.at(0).state, RunState::kRunning);
  EXPECT_EQ(store->find("run-1")->status.step, 300u);
  ASSERT_TRUE(store->write(record).ok());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kCompleted);
  EXPECT_EQ(store->find("run-1")->status.members.at(0).state, RunState::kCompleted);
}

TEST_F(RunStoreTest, AFailedProposalLeavesNothing) {
  open();
  schema::RunStatus pending;
  pending.id = "run-1";
  store->update(pending);
  EXPECT_EQ(store->statuses().size(), 1u);
  store->forget("run-1");
  EXPECT_TRUE(store->statuses().empty());
  ASSERT_TRUE(store->write(sample_record("run-2")).ok());
  store->forget("run-2");
  EXPECT_EQ(store->statuses().size(), 1u) << "what was written is not forgotten";
}

TEST_F(RunStoreTest, AFullDiskIsAnErrorAndTheStateIsStillShown) {
  open();
  write_text(run_file("run-1", "x"), "");
  std::filesystem::remove_all(run_file("run-1", ""));
  write_text(directory.path() + "/runs/run-1", "a file where the directory should be");
  const Status written = store->write(sample_record("run-1", "node-a", RunState::kFailed));
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("run-1"), std::string::npos);
  ASSERT_TRUE(store->find("run-1").has_value());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kFailed);
}

// --- recovery after a crash ---

TEST_F(RunStoreTest, TheNewestRecoveryPointStandsForTheState) {
  open();
  RunRecord running = sample_record("run-1");
  running.key = 77;
  ASSERT_TRUE(store->write(running).ok());
  const std::string directory_of_run = store->directory("run-1");
  for (const std::uint64_t step : {10, 20, 30})
    ASSERT_TRUE(write_checkpoint(directory_of_run, facts_at(step).id, {}, state_at(facts_at(step))).ok());
  // The newest one is damaged.
  const std::string newest = directory_of_run + "/" + checkpoint_name(facts_at(30).id);
  std::string damaged = read_text(newest);
  damaged.back() ^= 1;
  write_text(newest, damaged);
  open();
  const auto record = store->find("run-1");
  EXPECT_EQ(record->status.state, RunState::kInterrupted);
  EXPECT_EQ(record->status.step, 20u);
  EXPECT_EQ(record->status.digest_step, 20u);
  EXPECT_EQ(record->status.loss, facts_at(20).counters.loss) << "what status shows is of that step, too";
  EXPECT_FALSE(record->status.evaluated);
  EXPECT_EQ(record->status.members.at(0).digest, facts_at(20).id.digest);
  EXPECT_EQ(record->status.members.at(0).save, schema::SaveState::kSaved);
  // The models are read from it, before and after another start.
  for (int start = 0; start < 2; ++start) {
    for (const char* file : {"model.safetensors", "model-raw.safetensors"}) {
      std::string read;
      for (bool final = false; !final;) {
        const auto slice = store->read_slice("run-1", file, read.size(), 100);
        ASSERT_TRUE(slice.ok()) << slice.error().message;
        read += slice->data;
        final = slice->final;
      }
      write_text(directory.path() + "/fetched", read);
      const auto loaded = engine::read_safetensors(directory.path() + "/fetched");
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      EXPECT_EQ(loaded->values.at("w"), (std::vector<float>{1.0f, 2.0f, 20.0f}));
      EXPECT_EQ(loaded->metadata.at("step"), "20");
      EXPECT_FALSE(loaded->metadata.contains("spec")) << "what is for going on is not the model's";
    }
    open();
  }
  // The final state, which the record lacks, is newer.
  ASSERT_TRUE(store->persist(running).ok());
  ASSERT_TRUE(engine::write_image(directory_of_run + "/state.safetensors", state_at(facts_at(40))).ok());
  open();
  EXPECT_EQ(store->find("run-1")->status.digest_step, 40u);
}

TEST_F(RunStoreTest, ACheckpointOfThePreviousVersionStandsForTheState) {
  open();
  ASSERT_TRUE(store->write(sample_record("run-1")).ok());
  const auto put = [&](std::uint64_t step, const std::string& run) {
    const std::string file = "checkpoint-00000000" + std::to_string(step) + ".safetensors";
    ASSERT_TRUE(engine::write_image(run_file("run-1", file), tests::old_state_at(step, run)).ok());
  };
  put(20, "run-1");
  put(30, "run-2");
  open();
  EXPECT_EQ(store->find("run-1")->status.digest_step, 20u) << "another run's is no state of this one";
  EXPECT_EQ(store->find("run-1")->checkpoint, "checkpoint-0000000020.safetensors");
  EXPECT_EQ(store->find("run-1")->status.loss, 0.1234567890123) << "it says nothing of that: the record's stays";
}

// The space reserved for a run's record is released when the last record needs it.
TEST_F(RunStoreTest, TheLastRecordUsesTheReservedSpace) {
  for (const int fitting : {0, 1}) {  // not even the interval's line; the line but not the record
    const std::string id = "run-" + std::to_string(fitting);
    open();
    ASSERT_TRUE(store->write(sample_record(id)).ok());
    const std::string reserve = run_file(id, "reserve");
    ASSERT_TRUE(std::filesystem::exists(reserve));
    engine::set_disk_fault([reserve, left = fitting](engine::DiskCall call) mutable {
      return call == engine::DiskCall::kWrite && std::filesystem::exists(reserve) && left-- <= 0 ? ENOSPC : 0;
    });
    const Status written = store->write(sample_record(id, "node-a", RunState::kFailed));
    engine::set_disk_fault({});
    EXPECT_TRUE(written.ok()) << fitting << ": " << written.error().message;
    open();
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(store->find(id)->status.state, RunState::kFailed);
    EXPECT_EQ(store->find(id)->status.reason, "a \"reason\"") << "the record before it stands for it";
  }
}

TEST_F(RunStoreTest, AStateInMemoryStaysUntilItIsDeleted) {
  open();
  for (const char* id : {"run-1", "run-2"}) {
    RunRecord record = sample_record(id, "node-a", RunState::kCompleted);
    record.own_row().save = schema::SaveState::kInMemory;
    ASSERT_TRUE(store->write(record).ok());
    Artefacts artefacts;
    artefacts.emplace("model.safetensors", state_at(facts_at(7)));
    store->hold_in_memory(id, std::move(artefacts), nullptr, 1000);
  }
  EXPECT_EQ(store->unsaved().bytes, 2000u);
  EXPECT_EQ(store->unsaved().runs, "run-1, run-2");
  const auto slice = store->read_slice("run-1", "model.safetensors", 0, 1'000'000);
  ASSERT_TRUE(slice.ok()) << slice.error().message;
  EXPECT_EQ(slice->total_bytes, state_at(facts_at(7)).bytes());
  ASSERT_TRUE(store->mark_fetched("run-1").ok());
  EXPECT_TRUE(store->read_slice("run-1", "model.safetensors", 0, 10).ok()) << "another reader's copy may be lost";
  EXPECT_EQ(store->find("run-1")->own_row().save, schema::SaveState::kInMemory);
  for (const char* id : {"run-1", "run-2"}) ASSERT_TRUE(store->remove(id).ok());
  EXPECT_EQ(store->unsaved().bytes, 0u);
}

TEST_F(RunStoreTest, RetentionLeavesAStateThatIsOnlyInMemory) {
  auto opened = RunStore::open(directory.path(), "node-a", warnings, {{1, 1, 0}, [](const Deletion&) {}});
  ASSERT_TRUE(opened.ok());
  (*opened)->hold_in_memory("run-1", {}, nullptr, 1000);
  for (const char* id : {"run-1", "run-2", "run-3"}) {
    RunRecord record = sample_record(id, "node-a", RunState::kCompleted);
    record.status.since_ms += id[4];
    if (record.id == "run-1") record.own_row().save = schema::SaveState::kInMemory;
    ASSERT_TRUE((*opened)->write(record).ok());
  }
  EXPECT_TRUE((*opened)->exists("run-1"));
  EXPECT_FALSE((*opened)->exists("run-2"));
  EXPECT_EQ((*opened)->unsaved().runs, "run-1");
}

TEST_F(RunStoreTest, TheStateIsSavedOnceTheDiskHasRoom) {
  open();
  RunRecord record = sample_record("run-1", "node-a", RunState::kCompleted);
  record.key = 77;
  record.own_row().save = schema::SaveState::kInMemory;
  ASSERT_TRUE(store->write(record).ok());
  Artefacts artefacts;
  artefacts.emplace("model.safetensors", state_at(facts_at(7)));
  store->hold_in_memory("run-1", std::move(artefacts), nullptr, 1000);
  EXPECT_EQ(store->save_unsaved(), std::vector<std::uint64_t>{77});
  EXPECT_EQ(store->find("run-1")->own_row().save, schema::SaveState::kSaved);
  EXPECT_EQ(store->find("run-1")->files.at("model.safetensors"),
            engine::mark_of_file(run_file("run-1", "model.safetensors")).value());
  EXPECT_EQ(store->unsaved().bytes, 0u);
}

TEST_F(RunStoreTest, APersistedRecordIsNotShown) {
  open();
  RunRecord record = sample_record("run-1");
  ASSERT_TRUE(store->write(record).ok());
  record.status.state = RunState::kCompleted;
  ASSERT_TRUE(store->persist(record).ok());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kRunning);
  open();
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kCompleted) << "but a crash leaves it";
}

TEST_F(RunStoreTest, PartialFilesAreDeletedAtTheEndOrTheNextStart) {
  open();
  RunRecord record = sample_record("run-1");
  ASSERT_TRUE(store->write(record).ok());
  const std::string cut = run_file("run-1", "checkpoint-0000000010.safetensors.partial");
  write_text(cut, "cut");
  ASSERT_TRUE(store->persist(record).ok());
  EXPECT_TRUE(std::filesystem::exists(cut)) << "it may be being written";
  record.status.state = RunState::kCompleted;
  ASSERT_TRUE(store->persist(record).ok());
  EXPECT_FALSE(std::filesystem::exists(cut));
  const std::vector<std::string> left{cut, run_file("without-record", "run.json.partial"),
                                      directory.path() + "/state.json.partial"};
  for (const std::string& path : left) write_text(path, "cut");
  open();
  for (const std::string& path : left) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(store->find("run-1").has_value());
}

TEST_F(RunStoreTest, ARecordIsAmendedByItsKey) {
  open();
  RunRecord record = sample_record("run-1", "node-a", RunState::kFailed);
  record.key = 77;
  ASSERT_TRUE(store->write(record).ok());
  const auto complete = [](RunRecord& one) { one.status.state = RunState::kCompleted; };
  EXPECT_FALSE(store->amend(78, complete));
  EXPECT_FALSE(store->amend(0, complete));
  EXPECT_TRUE(store->amend(77, complete));
  open();
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kCompleted);
  ASSERT_EQ(store->records().size(), 1u);
  EXPECT_EQ(store->records()[0].key, 77u);
}

TEST_F(RunStoreTest, ThreadsMayWriteAndReadConcurrently) {
  open();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) {
      RunRecord record = sample_record("run-" + std::to_string(i % 4));
      record.status.step = record.status.members[0].step = static_cast<std::uint64_t>(i);
      EXPECT_TRUE(store->write(record).ok());
      store->update(record.status);
    }
    done = true;
  });
  std::size_t seen = 0;
  while (!done) {
    for (const schema::RunStatus& status : store->statuses()) {
      EXPECT_EQ(status.step, status.members.at(0).step) << "a status is one moment's";
      ++seen;
    }
    if (const auto slice = store->read_slice("run-1", "run.json", 0, 1'000'000); slice.ok()) {
      EXPECT_TRUE(record_from_json(slice->data).ok()) << "a reader never sees half a record";
    }
  }
  writer.join();
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace tg::daemon

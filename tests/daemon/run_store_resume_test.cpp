// What the store keeps and shows when a run is interrupted and resumed.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "daemon/store/checkpoints.h"
#include "daemon/store/run_store.h"
#include "daemon/store/view_interval.h"
#include "daemon/store/vote_file.h"
#include "engine/storage/disk_fault.h"
#include "engine/storage/safetensors.h"
#include "run_samples.h"
#include "state_samples.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using schema::RunState;
using schema::StateId;
using tests::artefacts_at;
using tests::facts_at;
using tests::read_text;
using tests::state_at;
using tests::TemporaryDirectory;
using tests::write_text;
using Steps = std::vector<std::uint64_t>;

class RunStoreResumeTest : public testing::Test {
 protected:
  void TearDown() override { engine::set_disk_fault({}); }
  void open(Retention retention = {}) {
    warnings.clear();
    store.reset();
    auto opened = RunStore::open(directory.path(), "node-a", warnings, std::move(retention));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store = std::move(*opened);
  }
  std::string run_file(const std::string& file) const { return directory.path() + "/runs/run-1/" + file; }
  static RunRecord record(RunState state, std::uint32_t lineage = 1, const StateId& from = {}) {
    RunRecord made = tests::sample_record("run-1", "node-a", state);
    made.key = 76 + lineage;
    made.files.clear();
    made.from = from;
    made.status.lineage = lineage;
    made.status.from_step = from.step;
    return made;
  }
  void put_checkpoint(std::uint64_t step, std::uint32_t lineage = 1, const StateId& from = {}) {
    const StateFacts facts = facts_at(step, lineage, 76 + lineage);
    ASSERT_TRUE(write_checkpoint(store->directory("run-1"), facts.id, from, state_at(facts)).ok());
  }
  void put_end(std::uint64_t step, std::uint32_t lineage = 1) {
    std::filesystem::create_directories(store->directory("run-1"));
    ASSERT_TRUE(write_artefacts(store->directory("run-1"), artefacts_at(facts_at(step, lineage, 76 + lineage))).ok());
  }
  // The steps of the recovery points in this node's row.
  Steps shown_states() const {
    const schema::RunStatus shown = store->statuses().at(0);
    for (const schema::MemberStatus& row : shown.members)
      if (row.node == "node-a") return row.states;
    return {};
  }
  // "lineage:state ...", from views.jsonl.
  std::string intervals() const {
    std::string text;
    for (const ViewInterval& interval : intervals_in(run_file(kViewsFile)))
      text += std::to_string(interval.lineage) + ":" + interval.ended.substr(0, interval.ended.find(':')) + " ";
    return text;
  }

  TemporaryDirectory directory;
  std::vector<std::string> warnings;
  std::unique_ptr<RunStore> store;
};

TEST_F(RunStoreResumeTest, AnInterruptedRunIsKeptUntilItIsDeleted) {
  open({{1, 1, 1}, [](const Deletion&) {}});
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  put_checkpoint(20);
  open({{1, 1, 1}, [](const Deletion&) {}});
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kInterrupted);
  for (const char* id : {"run-2", "run-3"}) {
    RunRecord other = tests::sample_record(id, "node-a", RunState::kCompleted);
    other.status.since_ms += id[4];
    ASSERT_TRUE(store->write(other).ok());
  }
  store->delete_expired();
  EXPECT_FALSE(store->exists("run-2"));
  EXPECT_TRUE(store->exists("run-1")) << "retention takes only what has ended";
  RunRecord paused = tests::sample_record("run-4", "node-a", RunState::kPaused);
  ASSERT_TRUE(store->write(paused).ok());
  store->delete_expired();
  EXPECT_TRUE(store->exists("run-4"));
  EXPECT_EQ(store->remove("run-4").error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(store->remove("run-1").ok()) << "an explicit wish";
  EXPECT_FALSE(store->exists("run-1"));
}

// A member that is PAUSED elsewhere may need the vote in a run that was interrupted here.
TEST_F(RunStoreResumeTest, AVoteOutlivesItsRecordUntilTheEndIsKnown) {
  const auto kept = [&](const std::string& id) { return directory.path() + "/votes/" + id; };
  open();
  RunRecord interrupted = record(RunState::kInterrupted);
  ASSERT_TRUE(store->write(interrupted).ok());
  EXPECT_TRUE(store->voters_in_doubt("run-1").empty()) << "without a vote";
  write_text(run_file(kVoteFile), "the vote");
  EXPECT_EQ(store->voters_in_doubt("run-1"), std::vector<std::string>{"node-c"}) << "node-b has reported its end";
  ASSERT_TRUE(store->remove("run-1").ok());
  EXPECT_FALSE(store->exists("run-1"));
  open();
  EXPECT_EQ(store->kept_votes().size(), 1u);
  EXPECT_EQ(store->vote_directory("run-1"), kept("run-1"));
  EXPECT_EQ(read_text(kept("run-1") + "/vote"), "the vote");
  // A run of that id whose end is known leaves no vote, not even an older one.
  ASSERT_TRUE(store->write(record(RunState::kCompleted)).ok());
  write_text(run_file(kVoteFile), "another");
  EXPECT_EQ(store->vote_directory("run-1"), directory.path() + "/runs/run-1");
  EXPECT_TRUE(store->voters_in_doubt("run-1").empty());
  ASSERT_TRUE(store->remove("run-1").ok());
  EXPECT_TRUE(store->kept_votes().empty());
}

TEST_F(RunStoreResumeTest, KeptVotesAreBoundedAndGoWithAWord) {
  const std::string votes = directory.path() + "/votes/";
  for (std::size_t i = 0; i < kKeptVotes.runs + 2; ++i) {
    const std::string file = votes + "run-" + std::to_string(100 + i) + "/vote";
    write_text(file, "");
    const auto age = std::chrono::milliseconds(i == 7 ? kKeptVotes.age_ms + 60'000 : i == 8 ? 120'000 : 60'000);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
  }
  std::string gone;
  open({{1, 1, 1}, [&](const Deletion& one) { gone += one.id + ": " + one.why + "\n"; }});
  EXPECT_EQ(store->kept_votes().size(), kKeptVotes.runs);
  EXPECT_EQ(gone,
            "run-107: only the vote was left: keep-age\n"
            "run-108: only the vote was left: keep-runs = 64\n");
}

TEST_F(RunStoreResumeTest, StatusShowsTheRecoveryPoints) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  for (const std::uint64_t step : {10, 20, 30}) put_checkpoint(step);
  EXPECT_EQ(shown_states(), Steps{}) << "it goes on";
  open();
  EXPECT_EQ(shown_states(), (Steps{30, 20}));
  open();
  EXPECT_EQ(shown_states(), (Steps{30, 20}));
  // A final state is one too.
  put_end(35);
  RunRecord ended = record(RunState::kFailed);
  ended.own_row().digest_step = 35;
  ASSERT_TRUE(store->write(ended).ok());
  EXPECT_EQ(shown_states(), (Steps{35, 30, 20}));
  const Result<RecoveryPoints> found = store->recovery_points("run-1");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->states.size(), 3u);
  EXPECT_EQ(found->states[0].file, kStateFile);
  EXPECT_EQ(store->recovery_points("run-2").error().kind, ErrorKind::kNotFound);
}

TEST_F(RunStoreResumeTest, EachIntervalIsALineAndTheFileHasAHash) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  EXPECT_EQ(intervals(), "") << "only what has ended";
  put_checkpoint(20);
  open();  // it was killed
  EXPECT_EQ(intervals(), "1:INTERRUPTED ");
  EXPECT_EQ(store->find("run-1")->intervals, 1u);
  EXPECT_EQ(intervals_in(run_file(kViewsFile))[0].to_step, 20u);
  open();
  EXPECT_EQ(intervals(), "1:INTERRUPTED ") << "told once";
  ASSERT_TRUE(store->write(record(RunState::kRunning, 2, facts_at(20).id)).ok());
  EXPECT_EQ(intervals(), "1:INTERRUPTED ");
  ASSERT_TRUE(store->persist(record(RunState::kRunning, 2, facts_at(20).id)).ok());
  put_end(40, 2);
  RunRecord completed = record(RunState::kCompleted, 2, facts_at(20).id);
  ASSERT_TRUE(store->persist(completed).ok());
  ASSERT_TRUE(store->write(completed).ok());
  EXPECT_EQ(intervals(), "1:INTERRUPTED 2:COMPLETED ");
  for (int start = 0; start < 2; ++start) {
    const RunRecord kept = *store->find("run-1");
    EXPECT_EQ(kept.intervals, 2u);
    EXPECT_EQ(kept.status.lineage, 2u);
    EXPECT_EQ(kept.files.at(kViewsFile), engine::mark_of_file(run_file(kViewsFile)).value());
    const auto slice = store->read_slice("run-1", kViewsFile, 0, 100'000);
    ASSERT_TRUE(slice.ok());
    EXPECT_EQ(slice->data, read_text(run_file(kViewsFile)));
    EXPECT_TRUE(slice->final);
    open();
  }
  // What is learned later about the end changes its line.
  EXPECT_FALSE(store->amend(77, [](RunRecord&) { FAIL() << "an earlier key changes nothing"; }));
  EXPECT_TRUE(store->amend(78, [](RunRecord& one) { one.status.state = RunState::kStopped; }));
  EXPECT_EQ(intervals(), "1:INTERRUPTED 2:STOPPED ");
  EXPECT_EQ(store->find("run-1")->files.at(kViewsFile), engine::mark_of_file(run_file(kViewsFile)).value());
}

// An older tgd wrote no views.jsonl.
TEST_F(RunStoreResumeTest, ARunOfThePreviousVersionGetsItsFirstLineWhenItIsResumed) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kFailed)).ok());
  std::filesystem::remove(run_file(kViewsFile));
  open();
  const auto none = store->read_slice("run-1", kViewsFile, 0, 100);
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(none->total_bytes, 0u);
  ASSERT_TRUE(store->write(record(RunState::kRunning, 2, facts_at(20).id)).ok());
  EXPECT_EQ(intervals(), "1:FAILED ");
  EXPECT_EQ(store->find("run-1")->intervals, 1u);
}

TEST_F(RunStoreResumeTest, AFailedResumeChangesNothing) {
  open();
  RunRecord ended = record(RunState::kFailed);
  put_end(35);
  ASSERT_TRUE(store->write(ended).ok());
  const std::string on_disk = read_text(run_file("run.json"));
  const std::string before = record_to_json(*store->find("run-1"));
  const auto resume = [&] {
    store->show_resuming("run-1");
    schema::RunStatus shown = store->find("run-1")->status;
    EXPECT_EQ(shown.state, RunState::kPending);
    EXPECT_EQ(store->statuses().at(0).state, RunState::kPending);
    EXPECT_EQ(shown_states(), Steps{});
    shown.state = RunState::kStarting;
    shown.reason = "waits for node-b";
    store->update(shown);
    EXPECT_EQ(store->statuses().at(0).reason, "waits for node-b");
    EXPECT_EQ(store->find("run-1")->spec, ended.spec);
  };
  resume();
  // Meanwhile its files can be read.
  EXPECT_TRUE(store->read_slice("run-1", "model.safetensors", 0, 100'000)->final);
  EXPECT_EQ(store->remove("run-1").error().kind, ErrorKind::kRefused);
  EXPECT_EQ(store->recovery_points("run-1")->states.size(), 1u);
  ASSERT_EQ(store->records().size(), 1u);
  EXPECT_EQ(store->records()[0].status.state, RunState::kFailed);
  store->show_resuming("run-1");  // twice is once
  store->forget("run-1");
  EXPECT_EQ(record_to_json(*store->find("run-1")), before);
  EXPECT_EQ(read_text(run_file("run.json")), on_disk);
  EXPECT_EQ(shown_states(), Steps{35});
  store->forget("run-1");
  EXPECT_EQ(record_to_json(*store->find("run-1")), before) << "there is nothing to forget";
  // The record of a resume that failed before it began does not replace the run's.
  resume();
  RunRecord unbegun;
  unbegun.id = unbegun.status.id = "run-1";
  unbegun.status.state = RunState::kFailed;
  EXPECT_TRUE(store->write(unbegun).ok());
  EXPECT_EQ(record_to_json(*store->find("run-1")), before);
  EXPECT_EQ(read_text(run_file("run.json")), on_disk);
  // What is learned about the run meanwhile stays.
  resume();
  EXPECT_TRUE(store->amend(77, [](RunRecord& one) { one.others["node-c"].problem = "no room"; }));
  ASSERT_TRUE(store->mark_fetched("run-1").ok());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kStarting);
  store->forget("run-1");
  EXPECT_EQ(store->find("run-1")->others.at("node-c").problem, "no room");
  EXPECT_GT(store->find("run-1")->fetched_ms, 1'700'000'000'000);
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kFailed);
  // A resume that a crash interrupted before it began is not on the disk.
  resume();
  open();
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kFailed);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(RunStoreResumeTest, AResumeThatBeginsReplacesTheRecord) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kFailed)).ok());
  store->show_resuming("run-1");
  ASSERT_TRUE(store->write(record(RunState::kRunning, 2, facts_at(20).id)).ok());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kRunning);
  store->forget("run-1");
  EXPECT_EQ(store->find("run-1")->status.lineage, 2u) << "what has begun is not forgotten";
  RunRecord ended = record(RunState::kInterrupted, 2, facts_at(20).id);
  store->update(ended.status);
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kRunning) << "an end is shown when it is on the disk";
  ASSERT_TRUE(store->write(ended).ok());
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kInterrupted);
  EXPECT_EQ(intervals(), "1:FAILED 2:INTERRUPTED ");
  EXPECT_TRUE(store->read_slice("run-1", "log.txt", 0, 10)->final);
  // It is found by its whole id only, and only for a run that has ended.
  store->show_resuming("run-9");
  ASSERT_TRUE(store->write(record(RunState::kRunning, 3, facts_at(20).id)).ok());
  store->show_resuming("run-1");
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kRunning);
}

TEST_F(RunStoreResumeTest, AResumeThatCannotBeWrittenHasNotBegun) {
  open();
  put_end(35);
  ASSERT_TRUE(store->write(record(RunState::kFailed)).ok());
  const std::string before = record_to_json(*store->find("run-1"));
  store->show_resuming("run-1");
  engine::set_disk_fault([](engine::DiskCall call) { return call == engine::DiskCall::kWrite ? ENOSPC : 0; });
  EXPECT_FALSE(store->write(record(RunState::kRunning, 2, facts_at(35).id)).ok());
  engine::set_disk_fault({});
  EXPECT_EQ(record_to_json(*store->find("run-1")), before);
  EXPECT_EQ(shown_states(), Steps{35});
  // A resume that was written and then failed to begin: it ends, and its recovery point stays.
  ASSERT_TRUE(store->write(record(RunState::kRunning, 2, facts_at(35).id)).ok());
  RunRecord unbegun;
  unbegun.id = unbegun.status.id = "run-1";
  unbegun.status.state = RunState::kFailed;
  unbegun.status.reason = "the engine failed";
  ASSERT_TRUE(store->write(unbegun).ok());
  open();
  const RunRecord ended = *store->find("run-1");
  EXPECT_EQ(ended.status.state, RunState::kFailed);
  EXPECT_EQ(ended.status.reason, "the engine failed");
  EXPECT_EQ(ended.status.lineage, 2u);
  EXPECT_TRUE(ended.has_begun());
  EXPECT_EQ(intervals(), "1:FAILED 2:FAILED ");
  EXPECT_EQ(shown_states(), Steps{35});
}

// A kill at every call of a resume's beginning, its checkpoint and its end: one of the earlier states is found, and the
// record names it.
TEST_F(RunStoreResumeTest, AKillAnywhereLeavesARecoveryPoint) {
  const StateId from = facts_at(20).id;
  const auto begin = [&] {
    open();
    ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
    for (const std::uint64_t step : {20, 30}) put_checkpoint(step);
    open();
  };
  struct Killed {};
  for (int calls = 1;; ++calls) {
    std::filesystem::remove_all(directory.path() + "/runs/run-1");
    begin();
    engine::set_disk_fault([left = calls](engine::DiskCall) mutable -> int {
      if (--left <= 0) throw Killed();
      return 0;
    });
    bool killed = false;
    try {
      store->write(record(RunState::kRunning, 2, from)).ok();
      put_checkpoint(40, 2, from);
      store->persist(record(RunState::kRunning, 2, from)).ok();
      put_end(50, 2);
      store->persist(record(RunState::kCompleted, 2, from)).ok();
    } catch (const Killed&) {
      killed = true;
    }
    engine::set_disk_fault({});
    open();
    EXPECT_EQ(warnings, std::vector<std::string>{}) << calls;
    const RunRecord found = *store->find("run-1");
    const RecoveryPoints states = *store->recovery_points("run-1");
    ASSERT_FALSE(states.states.empty()) << calls;
    const StateId newest = states.states[0].id;
    if (found.status.lineage == 1) {
      EXPECT_EQ(newest, facts_at(30).id) << calls;
    } else {
      EXPECT_TRUE(newest == from || newest.lineage == 2) << calls << ": " << newest.step;
    }
    EXPECT_EQ(intervals_in(run_file(kViewsFile)).size(), found.intervals) << calls;
    EXPECT_EQ(found.intervals, found.status.lineage) << calls;
    for (const std::string& rejected : states.rejected)
      EXPECT_NE(rejected.find("given up"), std::string::npos) << rejected;
    if (killed) continue;
    EXPECT_EQ(found.status.state, RunState::kCompleted);
    EXPECT_GT(calls, 20);
    break;
  }
}

TEST_F(RunStoreResumeTest, AFullDiskIsReportedAndLosesNoState) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  put_checkpoint(20);
  const auto fill = [](engine::DiskCall call) { return call == engine::DiskCall::kWrite ? ENOSPC : 0; };
  engine::set_disk_fault(fill);
  open();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("run run-1 is INTERRUPTED, but that cannot be written: ")) << warnings[0];
  EXPECT_EQ(store->find("run-1")->status.state, RunState::kInterrupted);
  EXPECT_EQ(shown_states(), Steps{20});
  engine::set_disk_fault({});
  open();
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(intervals(), "1:INTERRUPTED ");
}

// Members change during the run: there is a line for each view, and status stays the same.
TEST_F(RunStoreResumeTest, AViewChangeAddsALineAndTheRunContinues) {
  open();
  RunRecord first = record(RunState::kRunning);
  ASSERT_TRUE(store->write(first).ok());
  ViewInterval ended = interval_of(first);
  ended.to_step = 30;
  ended.ended = "CHANGED: without node-b";
  RunRecord next = first;
  next.view = 2;
  next.member_names = {"node-a", "node-c"};
  next.weights = {1, 1};
  next.from = {1, 1, 30, 0xcd};
  next.status.step = 30;
  schema::RunStatus shown = first.status;
  shown.step = 31;
  store->update(shown);
  ASSERT_TRUE(store->change_view(next, ended).ok());
  EXPECT_EQ(store->statuses().at(0).step, 31u);
  const std::vector<ViewInterval> lines = intervals_in(run_file(kViewsFile));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].view, 1u);
  EXPECT_EQ(lines[0].to_step, 30u);
  EXPECT_EQ(lines[0].ended, "CHANGED: without node-b");
  // A checkpoint's record, then the end.
  next.status.step = 35;
  ASSERT_TRUE(store->persist(next).ok());
  EXPECT_EQ(store->recorded("run-1")->intervals, 1u);
  next.status.state = RunState::kStopped;
  ASSERT_TRUE(store->write(next).ok());
  const std::vector<ViewInterval> all = intervals_in(run_file(kViewsFile));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].view, 2u);
  EXPECT_EQ(all[1].from.step, 30u);
  EXPECT_EQ(all[1].members, (std::vector<std::string>{"node-a", "node-c"}));
}

TEST_F(RunStoreResumeTest, AnIntervalThatTheDiskHasNoRoomForIsWrittenLater) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  std::filesystem::create_directory(run_file(kViewsFile));  // no file can be written there
  RunRecord next = record(RunState::kRunning);
  for (next.view = 1; next.view < 3;) {
    const ViewInterval ended = interval_of(next);
    ++next.view;
    EXPECT_FALSE(store->change_view(next, ended).ok());
  }
  EXPECT_EQ(std::ranges::count(store->history("run-1"), '\n'), 2) << "for a joiner";
  std::filesystem::remove(run_file(kViewsFile));
  EXPECT_TRUE(store->persist(next).ok());
  const std::vector<ViewInterval> past = intervals_in(run_file(kViewsFile));
  ASSERT_EQ(past.size(), 2u);
  EXPECT_EQ(past[0].view, 1u);
  EXPECT_EQ(past[1].view, 2u);
  EXPECT_EQ(store->recorded("run-1")->intervals, 2u);
}

// Another lineage contradicts what is here: it stays whole under an id of its own, whenever the process dies.
TEST_F(RunStoreResumeTest, WhatIsSetAsideStaysWhole) {
  open();
  ASSERT_TRUE(store->write(record(RunState::kRunning)).ok());
  put_checkpoint(20);
  ASSERT_TRUE(store->write(record(RunState::kInterrupted)).ok());
  const std::string kept = "run-1-000000000000004d";
  const Result<RunRecord> aside = store->set_aside("run-1", 0x4d, "node-b continues it");
  ASSERT_TRUE(aside.ok()) << aside.error().message;
  EXPECT_EQ(aside->id, kept);
  EXPECT_FALSE(store->exists("run-1"));
  EXPECT_FALSE(store->set_aside("run-1", 0x4d, "").ok());
  EXPECT_NE(store->recorded(kept)->aside.find("node-b continues it"), std::string::npos);
  EXPECT_EQ(store->recovery_points(kept)->states.size(), 1u) << "it can be resumed";
  store.reset();
  std::filesystem::rename(directory.path() + "/runs/" + kept, directory.path() + "/runs/run-1");
  std::string json = read_text(run_file(kRecordFile));
  json.replace(json.find(kept), kept.size(), "run-1");
  write_text(run_file(kRecordFile), json);
  std::filesystem::rename(directory.path() + "/runs/run-1", directory.path() + "/runs/" + kept);
  open();
  EXPECT_EQ(warnings.size(), 0u) << "it died after the folder was renamed";
  ASSERT_TRUE(store->recorded(kept));
  EXPECT_TRUE(store->recorded(kept)->left_by_order);
  EXPECT_EQ(store->recovery_points(kept)->states.size(), 1u);
}

}  // namespace
}  // namespace tg::daemon

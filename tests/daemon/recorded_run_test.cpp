// Which steps led to the end of a run, by its record and its past, and what a folder has to have to tell them.
#include "daemon/simulate/recorded_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "run_samples.h"
#include "schema/options/job.h"
#include "schema/text.h"
#include "temporary_directory.h"

namespace tg::daemon {
namespace {

using tests::write_text;

constexpr std::uint64_t kBeginning = 0xb0;

class RecordedRunTest : public testing::Test {
 protected:
  RecordedRunTest() {
    record.initial_digest = kBeginning;
    record.status.state = schema::RunState::kCompleted;
    record.spec = "learning-rate = 0.01\nmodel = lenet\nseed = 7\nsteps = 300\n";
    record.spec_hash = 0;  // as in an older record
    record.status.digest = 0;
    in(1, 1, {}, 120);
  }
  // The newest interval is this one now; the one before is the past.
  void in(std::uint32_t lineage, std::uint32_t view, const schema::StateId& from, std::uint64_t step) {
    record.status.lineage = lineage;
    record.key = 70 + lineage;
    record.view = view;
    record.from = from;
    record.status.step = step;
    record.own_row().digest = 0xd000 + step;
    record.own_row().digest_step = step;
  }
  void next(std::uint32_t lineage, std::uint32_t view, const schema::StateId& from, std::uint64_t step) {
    past.push_back(interval_of(record));
    in(lineage, view, from, step);
  }
  // "FIRST-LAST digest" of each leg.
  std::string legs() const {
    const Result<std::vector<Leg>> found = legs_of(record, past);
    if (!found) return found.error().message;
    std::string text;
    for (const Leg& leg : *found) {
      char one[80];
      std::snprintf(one, sizeof one, "%s%u.%u %llu-%llu %llx", text.empty() ? "" : ", ", leg.interval.lineage,
                    leg.interval.view, static_cast<unsigned long long>(leg.first),
                    static_cast<unsigned long long>(leg.last), static_cast<unsigned long long>(leg.digest));
      text += one;
    }
    return text;
  }
  std::string read() const {
    const Result<RecordedRun> run = read_recorded_run(directory.path());
    return run ? "read" : run.error().message;
  }

  RunRecord record = tests::sample_record("run-1");
  std::vector<ViewInterval> past;
  tests::TemporaryDirectory directory;
};

TEST_F(RecordedRunTest, OneStretchNeedsNoPast) {
  EXPECT_EQ(legs(), "1.1 0-120 d078");
  past.push_back(interval_of(record));  // its line may be there, or torn
  EXPECT_EQ(legs(), "1.1 0-120 d078");
}

TEST_F(RecordedRunTest, ALostMemberMakesAViewALeg) {
  next(1, 2, {1, 1, 119, 0xaa}, 200);
  record.member_names = {"node-a", "node-c"};
  record.weights = {3, 1000};
  next(1, 3, {1, 2, 200, 0xbb}, 200);  // nothing was done in it
  next(2, 1, {1, 3, 200, 0xbb}, 300);
  EXPECT_EQ(legs(), "1.1 0-119 aa, 1.2 119-200 bb, 2.1 200-300 d12c");
  const std::vector<Leg> found = legs_of(record, past).value();
  EXPECT_EQ(found[0].interval.members.size(), 3u);
  EXPECT_EQ(found[1].interval.members, (std::vector<std::string>{"node-a", "node-c"}));
  EXPECT_EQ(found[2].interval.members, (std::vector<std::string>{"node-a", "node-c"}));
}

TEST_F(RecordedRunTest, WhatWasGivenUpIsLeftOut) {
  next(2, 1, {1, 1, 100, 0xaa}, 250);
  next(3, 1, {1, 1, 40, 0xbb}, 260);
  EXPECT_EQ(legs(), "1.1 0-40 bb, 3.1 40-260 d104");
  next(4, 1, {1, 1, 0, kBeginning}, 50);
  EXPECT_EQ(legs(), "4.1 0-50 d032");
}

TEST_F(RecordedRunTest, EachLegHasItsOwnSettings) {
  record.spec = "learning-rate = 0.5\nmodel = lenet\nseed = 7\nsteps = 150\n";
  next(2, 1, {1, 1, 100, 0xaa}, 250);
  record.spec = "learning-rate = 0.01\nmodel = lenet\nseed = 7\nsteps = 300\n";
  const Result<std::vector<Leg>> found = legs_of(record, past);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->at(0).job.steps, 150u);
  EXPECT_EQ(found->at(0).job.learning_rate, 0.5);
  EXPECT_EQ(found->at(1).job.steps, 300u);
  EXPECT_EQ(found->at(1).job.learning_rate, 0.01);
  past[0].settings["learning-rate"] = "fast";
  EXPECT_NE(legs().find("views.jsonl is damaged"), std::string::npos) << legs();
}

TEST_F(RecordedRunTest, APastThatLacksALineOrIsOddIsNamed) {
  next(2, 1, {1, 1, 100, 0xaa}, 250);
  past.clear();
  EXPECT_EQ(legs(),
            "the past of the run is damaged: lineage 2, view 1 began with a state of lineage 1, view 1, which "
            "views.jsonl does not have");
  record.from.step = 251;
  EXPECT_NE(legs().find("goes from step 251 to 250"), std::string::npos) << legs();
  in(1, 1, {}, 301);
  EXPECT_NE(legs().find("to 301 of 300"), std::string::npos) << legs();
  in(1, 1, {}, 120);
  record.weights.pop_back();
  EXPECT_NE(legs().find("does not say whose it was"), std::string::npos) << legs();
  record.weights.push_back(1);
  record.member_names[1] = record.member_names[0];
  EXPECT_NE(legs().find("does not say whose it was"), std::string::npos) << legs();
  record.member_names[1] = "node-b";
  // A circle.
  in(2, 1, {2, 1, 100, 0xaa}, 120);
  EXPECT_NE(legs().find("does not have"), std::string::npos) << legs();
}

TEST_F(RecordedRunTest, AFileThatIsNotWhatTheRecordSaysIsNamed) {
  record.spec = schema::canonical_job(*schema::parse_job(record.spec, "job"));  // with keys that have no value
  record.spec_hash = schema::hash_text(record.spec);
  record.status.digest = record.own_row().digest;
  write_text(directory.path() + "/metrics.jsonl", "{\"step\":1,\"loss\":2.5}\n");
  record.files["metrics.jsonl"] = engine::mark_of_file(directory.path() + "/metrics.jsonl").value();
  const auto write_record = [&] { write_text(directory.path() + "/run.json", record_to_json(record)); };
  write_record();
  EXPECT_EQ(read(), "read");
  write_text(directory.path() + "/metrics.jsonl", "{\"step\":1,\"loss\":2.6}\n");
  EXPECT_NE(read().find("metrics.jsonl is not as it was written: its SHA-256"), std::string::npos) << read();
  std::filesystem::remove(directory.path() + "/metrics.jsonl");
  EXPECT_NE(read().find("metrics.jsonl: No such file"), std::string::npos) << read();
  record.files.erase("metrics.jsonl");
  ASSERT_EQ(::mkfifo((directory.path() + "/metrics.jsonl").c_str(), 0600), 0);
  write_record();
  EXPECT_NE(read().find("metrics.jsonl: it is not a regular file"), std::string::npos) << read();
  record.status.digest ^= 1;
  write_record();
  EXPECT_NE(read().find("of step 120 the run has digest"), std::string::npos) << read();
  record.spec.replace(record.spec.find("steps = 300"), 11, "steps = 301");
  write_record();
  EXPECT_NE(read().find("its job has hash"), std::string::npos) << read();
}

TEST_F(RecordedRunTest, AFolderIsReadOrSaysWhatItLacks) {
  EXPECT_NE(read().find("run.json: No such file or directory; recompute takes a folder that tgctl fetch made"),
            std::string::npos)
      << read();
  const std::string path = directory.path() + "/run.json";
  write_text(path, record_to_json(record));
  EXPECT_EQ(read(), "read");
  write_text(directory.path() + "/members.json", R"({"node-b": {"threads": 3, "engine_build": "x"}})");
  write_text(directory.path() + "/metrics.jsonl", "{\"step\":1,\"loss\":2.5}\nodd\n{\"step\":2,\"loss\":null}\n{\"st");
  const RecordedRun run = read_recorded_run(directory.path()).value();
  EXPECT_EQ(run.members.at("node-b").threads, 3u);
  EXPECT_EQ(run.members.at("node-a").threads, record.own.threads);
  EXPECT_EQ(run.losses.at(1), 2.5);
  EXPECT_TRUE(run.losses.size() == 2 && std::isnan(run.losses.at(2))) << "recorded as not finite";
  EXPECT_EQ(run.names, (std::vector<std::string>{"node-a", "node-b", "node-c"}));
  for (const char* const odd : {"[", "[1]", R"({"node-b": 7})", R"({"node-b": {"threads": "many"}})"}) {
    write_text(directory.path() + "/members.json", odd);
    EXPECT_NE(read().find("members.json is damaged"), std::string::npos) << odd << ": " << read();
  }
  record.global_batch = 1'000'000'000'000'000;
  write_text(path, record_to_json(record));
  EXPECT_NE(read().find("run.json is damaged: field global_batch is not a whole number in bounds"), std::string::npos)
      << read();
  record.global_batch = 64;
  record.status.state = schema::RunState::kRunning;
  write_text(path, record_to_json(record));
  EXPECT_NE(read().find("was RUNNING when"), std::string::npos) << read();
  in(1, 1, {}, 0);
  record.own_row().digest = 0;
  record.status.state = schema::RunState::kFailed;
  write_text(path, record_to_json(record));
  EXPECT_NE(read().find("is FAILED without a state"), std::string::npos) << read();
  record.spec.clear();
  write_text(path, record_to_json(record));
  EXPECT_NE(read().find("never began"), std::string::npos) << read();
}

}  // namespace
}  // namespace tg::daemon

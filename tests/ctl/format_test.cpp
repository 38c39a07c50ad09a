// What people and programs read: tables, the live line, the warning, and the JSON's exact fields.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "ctl/exit_code.h"
#include "ctl/format/progress.h"
#include "ctl/format/status_json.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "kernels/base/hex.h"

namespace tg::ctl {
namespace {

using nlohmann::ordered_json;
using schema::RunState;

constexpr std::int64_t kNowMs = 1'700'000'100'000;

schema::RunStatus sample_run() {
  schema::RunStatus run;
  run.id = "first";
  run.state = RunState::kRunning;
  run.since_ms = kNowMs - 42'000;
  run.model = "lenet";
  run.data = "mnist";
  run.exchange = "direct";
  run.gradients = "ternary";
  run.step = 120;
  run.steps = 1000;
  run.loss = 0.12345;
  run.learning_rate = 0.01;
  run.samples_per_second = 1234.5;
  run.code_bits_per_parameter = 0.5;
  run.sent_bits_per_parameter = 1.5;
  run.sent_bytes_per_step = 235'515;
  run.zeros = 0.93;
  run.digest = 0xfedcba9876543210;
  run.members = {{"node-a", RunState::kRunning, 120, 0xfedcba9876543210, 120, 0.25},
                 {"node-b", RunState::kStarting, 0, 0, 0, 0}};
  return run;
}

schema::MeshStatus sample_mesh() {
  return {"node-a",
          "tgd",
          false,
          {{"node-a", "127.0.0.1:7701", "up"}, {"node-b", "127.0.0.1:7711", "unreachable"}},
          {sample_run()}};
}

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

TEST(StatusJson, HasExactlyTheFieldsOfSchemaVersion1) {
  const auto json = ordered_json::parse(format_status_json(sample_mesh(), 2));
  EXPECT_EQ(keys(json), (std::vector<std::string>{"schema_version", "nodes", "runs"}));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(keys(json["nodes"][0]), (std::vector<std::string>{"name", "address", "state"}));
  EXPECT_EQ(json["nodes"][1]["state"], "unreachable");
  const auto& run = json["runs"][0];
  EXPECT_EQ(keys(run),
            (std::vector<std::string>{"id", "state", "reason", "model", "exchange", "coding", "step", "steps", "loss",
                                      "evaluation", "samples_per_second", "code_bits_per_parameter",
                                      "sent_bits_per_parameter", "sent_bytes_per_step", "zeros", "digest", "members"}));
  EXPECT_EQ(run["state"], "RUNNING");
  EXPECT_TRUE(run["step"].is_number_unsigned());
  EXPECT_EQ(run["loss"], 0.12345);
  EXPECT_TRUE(run["evaluation"].is_null());
  EXPECT_EQ(run["digest"], "fedcba9876543210");
  EXPECT_EQ(keys(run["members"][0]),
            (std::vector<std::string>{"node", "state", "step", "digest", "wait_share", "save", "problem", "holds_up"}));
  EXPECT_EQ(run["members"][0]["wait_share"], 0.25);
  EXPECT_EQ(run["members"][0]["holds_up"], false);
  EXPECT_TRUE(run["members"][1]["digest"].is_null());
}

TEST(StatusJson, EvaluationAppearsOnceThereIsOne) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].evaluated = true;
  mesh.runs[0].evaluation_step = 100;
  mesh.runs[0].evaluation_accuracy = 0.98;
  mesh.runs[0].evaluation_loss = 0.05;
  const auto evaluation = ordered_json::parse(format_status_json(mesh, -1))["runs"][0]["evaluation"];
  EXPECT_EQ(keys(evaluation), (std::vector<std::string>{"step", "accuracy", "loss"}));
  EXPECT_EQ(evaluation["accuracy"], 0.98);
}

TEST(StatusJson, WhatHasNoValueYetIsNull) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].step = 0;
  auto run = ordered_json::parse(format_status_json(mesh, -1))["runs"][0];
  for (const char* key : {"loss", "samples_per_second", "code_bits_per_parameter", "sent_bits_per_parameter",
                          "sent_bytes_per_step", "zeros"}) {
    EXPECT_TRUE(run[key].is_null()) << key;
  }
  mesh = sample_mesh();
  mesh.runs[0].loss = std::numeric_limits<double>::infinity();
  mesh.runs[0].reason = "a path \xff that is no UTF-8";
  run = ordered_json::parse(format_status_json(mesh, -1))["runs"][0];
  EXPECT_TRUE(run["loss"].is_null());
  EXPECT_EQ(format_status_json(mesh, -1).find('\n'), std::string::npos);
}

TEST(StatusText, MeshShowsNodesAndRuns) {
  const std::string text = format_mesh(sample_mesh(), kNowMs);
  EXPECT_EQ(text,
            "NODE    ADDRESS         STATE\n"
            "node-a  127.0.0.1:7701  up\n"
            "node-b  127.0.0.1:7711  unreachable\n"
            "\n"
            "RUN    STATE    FOR  MODEL  STEP      LOSS    ACCURACY  SAMPLES/S  REASON\n"
            "first  RUNNING  42s  lenet  120/1000  0.1235  -         1234\n");
  schema::MeshStatus open = sample_mesh();
  open.insecure = true;
  EXPECT_NE(format_mesh(open, kNowMs).find("without keys"), std::string::npos);
  EXPECT_EQ(format_runs({}, kNowMs), "no runs\n");
}

TEST(StatusText, RunShowsItsNumbersAndMembers) {
  schema::RunStatus run = sample_run();
  run.state = RunState::kFailed;
  run.reason = "node-b was lost in reduce";
  run.evaluated = true;
  run.evaluation_accuracy = 0.98765;
  const std::string text = format_run(run, kNowMs);
  for (const char* part : {"FAILED for 42s", "node-b was lost in reduce", "120 of 1000", "98.77 %", "fedcba9876543210",
                           "0.500 codes, 1.500 sent, 93.0 % zeros", "235.5 kB", "node-a  RUNNING", "25 %"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Plan, WarnsBelowItsThresholdWithTheNumbers) {
  schema::StartReply plan;
  plan.members = 4;
  plan.predicted.compute = 0.004;
  plan.predicted.wire = 0.012;
  plan.predicted.step = 0.016;
  plan.link_mbps = 1000;
  plan.predicted.speed_up = 0.94;
  const auto warning = speed_up_warning(plan);
  ASSERT_TRUE(warning.has_value());
  for (const char* part : {"4 members", "0.94 x", "16.0 ms", "4.0 ms", "12.0 ms", "1000 Mbit/s", "15.0 ms"}) {
    EXPECT_NE(warning->find(part), std::string::npos) << part << " in " << *warning;
  }
  plan.predicted.speed_up = 1.2;
  EXPECT_FALSE(speed_up_warning(plan).has_value());
  plan.predicted.speed_up = 1.19;
  EXPECT_TRUE(speed_up_warning(plan).has_value());
  plan.members = 1;
  EXPECT_FALSE(speed_up_warning(plan).has_value()) << "one node has nobody to be faster than";
  EXPECT_NE(format_plan(plan).find("1.19 x over one node"), std::string::npos);
  EXPECT_NE(format_plan(plan).find("assumed speeds"), std::string::npos);
  plan.measured_ms = kNowMs;
  EXPECT_NE(format_plan(plan).find("the node's measurement"), std::string::npos);
  plan.members = 4;
  plan.unpredicted = "no peer answered";
  EXPECT_FALSE(speed_up_warning(plan).has_value()) << "of what is not known nobody is warned";
  EXPECT_NE(format_plan(plan).find("no peer answered"), std::string::npos);
  EXPECT_EQ(format_plan(plan).find("over one node"), std::string::npos);
}

TEST(StatusText, WhoIsWaitedForMostOfTheTimeIsMarked) {
  schema::RunStatus run = sample_run();
  run.members[1].state = schema::RunState::kRunning;
  run.members[1].wait_share = schema::kHoldsUpShare;
  EXPECT_EQ(format_run(run, kNowMs).find("holds the run up"), std::string::npos) << "just half";
  run.members[1].wait_share = 0.62;
  EXPECT_NE(format_run(run, kNowMs).find("62 %, holds the run up"), std::string::npos);
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs = {run};
  const auto json = ordered_json::parse(format_status_json(mesh, 2));
  EXPECT_EQ(json["runs"][0]["members"][0]["holds_up"], false);
  EXPECT_EQ(json["runs"][0]["members"][1]["holds_up"], true);
  run.members[1].state = schema::RunState::kCompleted;
  EXPECT_EQ(format_run(run, kNowMs).find("holds the run up"), std::string::npos) << "it is over";
}

TEST(Progress, LineSaysWhereTheRunIsAndWhenItEnds) {
  ProgressLine progress;
  schema::RunStatus run = sample_run();
  run.step = 100;
  EXPECT_EQ(progress.update(run, 0).find("ETA"), std::string::npos) << "no rate yet";
  run.step = 110;
  run.evaluated = true;
  run.evaluation_accuracy = 0.971;
  EXPECT_EQ(progress.update(run, 5000),
            "RUNNING  step 110/1000  loss 0.1235  accuracy 97.10 %  1234 samples/s  1.50 bits/parameter  ETA 7m25s");
  run.state = RunState::kCompleted;
  run.step = 1000;
  EXPECT_EQ(progress.update(run, 6000).find("ETA"), std::string::npos);
}

TEST(Progress, RateForgetsWhatIsLongAgo) {
  ProgressLine progress;
  schema::RunStatus run = sample_run();
  run.step = 0;
  progress.update(run, 0);  // a slow minute of start-up
  run.step = 1;
  progress.update(run, 60'000);
  run.step = 101;
  progress.update(run, 70'000);
  run.step = 201;
  EXPECT_NE(progress.update(run, 80'000).find("ETA 1m20s"), std::string::npos);  // 799 steps at 10 a second
}

TEST(Progress, PipesGetALineEveryTenSecondsOrHundredSteps) {
  PlainPace pace;
  schema::RunStatus run = sample_run();
  run.step = 0;
  EXPECT_TRUE(pace.due(run, 0));
  EXPECT_FALSE(pace.due(run, 500));
  run.step = 99;
  EXPECT_FALSE(pace.due(run, 1000));
  run.step = 100;
  EXPECT_TRUE(pace.due(run, 1500));
  EXPECT_FALSE(pace.due(run, 11'499));
  EXPECT_TRUE(pace.due(run, 11'500));
  run.state = RunState::kCompleted;
  EXPECT_TRUE(pace.due(run, 11'600));
}

TEST(Progress, LineFitsTheTerminal) {
  EXPECT_EQ(fit_line("abcdef", 4), "abcd");
  EXPECT_EQ(fit_line("abc", 4), "abc");
  EXPECT_EQ(fit_line("\xc3\xb6\xc3\xb6\xc3\xb6", 2), "\xc3\xb6\xc3\xb6");
}

TEST(Table, Numbers) {
  EXPECT_EQ(format_seconds(0.0000005), "0 us");
  EXPECT_EQ(format_seconds(0.00095), "950 us");
  EXPECT_EQ(format_seconds(0.0041), "4.1 ms");
  EXPECT_EQ(format_seconds(2.5), "2.50 s");
  EXPECT_EQ(format_span(59.4), "59s");
  EXPECT_EQ(format_span(185), "3m05s");
  EXPECT_EQ(format_span(7800), "2h10m");
  EXPECT_EQ(format_span(400'000), "4d");
  EXPECT_EQ(format_span(-1), "-");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1'234'567), "1.2 MB");
  EXPECT_EQ(format_percent(0.981, 1), "98.1 %");
  EXPECT_EQ(format_fixed(std::numeric_limits<double>::quiet_NaN(), 2), "-");
  EXPECT_EQ(format_mbps(941.4), "941 Mbit/s");
  EXPECT_EQ(format_mbps(5.63), "5.6 Mbit/s");
  EXPECT_EQ(hex_digest(255), "00000000000000ff");
  EXPECT_EQ(format_table({{"a", "b"}, {"\xc3\xb6\xc3\xb6\xc3\xb6", "c"}}), "a    b\n\xc3\xb6\xc3\xb6\xc3\xb6  c\n");
}

TEST(ExitCode, FollowsTheKind) {
  EXPECT_EQ(exit_code(ErrorKind::kFailed), 1);
  EXPECT_EQ(exit_code(ErrorKind::kRefused), 1);
  EXPECT_EQ(exit_code(ErrorKind::kUsage), 2);
  EXPECT_EQ(exit_code(ErrorKind::kInvalidJob), 2);
  EXPECT_EQ(exit_code(ErrorKind::kUnreachable), 3);
  EXPECT_EQ(exit_code(ErrorKind::kNotFound), 4);
  EXPECT_EQ(exit_code(ErrorKind::kRunFailed), 5);
  EXPECT_EQ(kTimedOut, 124);
  EXPECT_EQ(kInterrupted, 130);
}

}  // namespace
}  // namespace tg::ctl

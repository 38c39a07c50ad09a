// The output for people and programs: tables, the live line, the warning, and the JSON's exact fields.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <type_traits>

#include "ctl/exit_code.h"
#include "ctl/format/progress.h"
#include "ctl/format/status_json.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "kernels/base/hex.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using nlohmann::ordered_json;
using schema::RunState;

constexpr std::int64_t kNowMs = 1'700'000'100'000;

schema::RunStatus sample_run() {
  schema::RunStatus run;
  run.id = "first";
  run.state = RunState::kRunning;
  run.started_ms = kNowMs - 60'000;
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
  run.digest_step = 120;
  run.members = {
      {"node-a", RunState::kRunning, 120, 0xfedcba9876543210, 120, 0.25, schema::Phase::kBackward, 12'345, 60'000},
      {"node-b", RunState::kStarting, 0, 0, 0, 0, schema::Phase::kPrepare}};
  return run;
}

schema::MeshStatus sample_mesh() {
  return {"node-a",
          "tgd",
          false,
          {{"node-a", "127.0.0.1:7701", schema::NodeState::kUp, ""},
           {"node-b", "127.0.0.1:7711", schema::NodeState::kUnreachable, "nothing answers at 127.0.0.1:7711"}},
          {sample_run()}};
}

// The order of keys is not part of the format.
std::set<std::string> keys(const ordered_json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

// All keys of a run and a member are in tests/golden.
TEST(StatusJson, HasExactlyTheFieldsOfSchemaVersion1) {
  const auto json = ordered_json::parse(format_status_json(sample_mesh(), kNowMs, 2));
  EXPECT_EQ(keys(json), (std::set<std::string>{"schema_version", "nodes", "runs"}));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(keys(json["nodes"][0]), (std::set<std::string>{"name", "address", "state", "problem", "compute"}));
  EXPECT_EQ(json["nodes"][1]["state"], "unreachable");
  EXPECT_TRUE(json["nodes"][1]["compute"].is_null());
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["state"], "RUNNING");
  EXPECT_TRUE(run["step"].is_number_unsigned());
  EXPECT_EQ(run["loss"], 0.12345);
  EXPECT_TRUE(run["evaluation"].is_null());
  EXPECT_EQ(run["digest"], "fedcba9876543210");
  EXPECT_EQ(run["members"][0]["phase"].dump(), R"({"name":"backward","seconds":12.345,"limit_seconds":60.0})");
  EXPECT_EQ(run["members"][1]["phase"].dump(), R"({"name":"prepare","seconds":null,"limit_seconds":null})");
  EXPECT_EQ(run["started"], "2023-11-14T22:14:00Z");
  EXPECT_EQ(run["since"], "2023-11-14T22:14:18Z");
  EXPECT_EQ(run["seconds_left"], 308) << "880 steps at the rate of 120 in 42 s";
  EXPECT_EQ(run["members"][0]["wait_share"], 0.25);
  EXPECT_EQ(run["members"][0]["holds_up"], false);
  EXPECT_TRUE(run["members"][1]["digest"].is_null());
}

TEST(StatusJson, ListIsTheRunsOfStatus) {
  const auto status = ordered_json::parse(format_status_json(sample_mesh(), kNowMs, 2));
  const auto list = ordered_json::parse(format_list_json(sample_mesh().runs, kNowMs, 2));
  EXPECT_EQ(keys(list), (std::set<std::string>{"schema_version", "runs"}));
  EXPECT_EQ(list["runs"], status["runs"]);
}

// A number instead of a word would not compile.
static_assert(!std::is_constructible_v<ordered_json, RunState>);

TEST(StatusJson, TimesThatAreNotKnownAreNull) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].started_ms = mesh.runs[0].since_ms = 0;
  auto run = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0];
  for (const char* key : {"started", "since", "seconds_left"}) EXPECT_TRUE(run[key].is_null()) << key;
  mesh = sample_mesh();
  mesh.runs[0].state = RunState::kCompleted;
  run = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0];
  EXPECT_TRUE(run["seconds_left"].is_null());
}

TEST(StatusJson, EvaluationAppearsOnceThereIsOne) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].evaluated = true;
  mesh.runs[0].evaluation_step = 100;
  mesh.runs[0].evaluation_accuracy = 0.98;
  mesh.runs[0].evaluation_loss = 0.05;
  const auto evaluation = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0]["evaluation"];
  EXPECT_EQ(keys(evaluation), (std::set<std::string>{"step", "accuracy", "accuracy_5", "loss"}));
  EXPECT_EQ(evaluation["accuracy"], 0.98);
  EXPECT_TRUE(evaluation["accuracy_5"].is_null());
  mesh.runs[0].evaluation_accuracy_5 = 0.99;
  EXPECT_EQ(ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0]["evaluation"]["accuracy_5"], 0.99);
}

TEST(StatusJson, UnknownValuesAreNull) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].step = 0;
  auto run = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0];
  for (const char* key : {"loss", "samples_per_second", "code_bits_per_parameter", "sent_bits_per_parameter",
                          "sent_bytes_per_step", "zeros"}) {
    EXPECT_TRUE(run[key].is_null()) << key;
  }
  mesh = sample_mesh();
  mesh.runs[0].loss = std::numeric_limits<double>::infinity();
  mesh.runs[0].reason = "a path \xff that is no UTF-8";
  run = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0];
  EXPECT_TRUE(run["loss"].is_null());
  EXPECT_EQ(format_status_json(mesh, kNowMs, -1).find('\n'), std::string::npos);
}

TEST(StatusText, MeshShowsNodesAndRuns) {
  const std::string text = format_mesh(sample_mesh(), kNowMs);
  EXPECT_EQ(text,
            "NODE    ADDRESS         STATE\n"
            "node-a  127.0.0.1:7701  up\n"
            "node-b  127.0.0.1:7711  unreachable\n"
            "  nothing answers at 127.0.0.1:7711\n"
            "\n"
            "RUN    STATE    FOR  LEFT   STEP      LOSS    ACCURACY\n"
            "first  RUNNING  42s  5m08s  120/1000  0.1235  -\n");
  schema::MeshStatus open = sample_mesh();
  open.insecure = true;
  EXPECT_NE(format_mesh(open, kNowMs).find("without keys"), std::string::npos);
  EXPECT_EQ(format_runs({}, kNowMs), "no runs\n");
}

TEST(StatusText, DevicesAreShownUnlessAllUseTheProcessor) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.nodes[0].compute = {"cpu", "", "fp32", 0, 0, "", "no module is installed", true};
  EXPECT_EQ(format_mesh(mesh, kNowMs), format_mesh(sample_mesh(), kNowMs));
  mesh.nodes[0].compute = {"cuda", "NVIDIA H100 (device 0)", "fp32", 70'000'000'000, 80'000'000'000, "", "", false};
  EXPECT_NE(format_mesh(mesh, kNowMs)
                .find("\n\n"
                      "NODE    ENGINE  MATH  GPU MEMORY FREE\n"
                      "node-a  cuda    fp32  70.0 GB of 80.0 GB\n"
                      "  NVIDIA H100 (device 0)\n"
                      "node-b  -       -     -\n"
                      "\n"),
            std::string::npos)
      << format_mesh(mesh, kNowMs);
  EXPECT_EQ(unavailable_nodes(mesh), "node-b: nothing answers at 127.0.0.1:7711");
  mesh.nodes[0].compute.problem = "the device does not answer";
  EXPECT_EQ(unavailable_nodes(mesh), "node-a: the device does not answer, node-b: nothing answers at 127.0.0.1:7711");
  mesh.nodes[0].compute = {"cpu", "", "fp32", 0, 0, "", "the driver is too old", false};
  EXPECT_NE(format_mesh(mesh, kNowMs).find("  the driver is too old\n"), std::string::npos);
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(schema::text_width(line), kColumns) << line;
}

TEST(StatusText, NoLineWrapsAtEightyColumns) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.insecure = true;
  schema::RunStatus usual = sample_run();
  usual.id = "lenet-20261123-0452-5f6e";
  usual.state = RunState::kCompleted;
  usual.step = usual.steps = 10'000;
  usual.evaluated = true;
  usual.evaluation_accuracy = 1;
  schema::RunStatus long_one = usual;
  long_one.id = std::string(63, 'r');
  long_one.state = RunState::kFailed;
  long_one.step = long_one.steps = 4'294'967'294;
  long_one.loss = 1e300;
  long_one.reason = "node-b lost the connection to node-c in reduce of step 812; is it running? Its address is " +
                    std::string(100, 'x');
  long_one.exchange = long_one.coding = long_one.gradients = long_one.model = long_one.data = std::string(63, 'w');
  long_one.last_layer = std::string(63, 'l');
  long_one.members[0].node = std::string(63, 'n');
  long_one.members[0].state = RunState::kRunning;
  long_one.members[0].wait_share = 0.99;
  mesh.runs = {usual};
  const std::string one_line = format_runs(mesh.runs, kNowMs);
  EXPECT_EQ(std::count(one_line.begin(), one_line.end(), '\n'), 2) << one_line;
  expect_narrow(one_line);
  mesh.runs = {long_one, usual};
  mesh.nodes = {{std::string(63, 'n'), std::string(260, 'a'), schema::NodeState::kUp, ""},
                {"node-b", "127.0.0.1:7711", schema::NodeState::kNoLink,
                 "its mesh port 127.0.0.1:7710 is not reachable: is a firewall between?"}};
  expect_narrow(format_mesh(mesh, kNowMs));
  expect_narrow(format_run(long_one, kNowMs));
  schema::StartReply plan;
  plan.run_id = std::string(63, 'r');
  plan.exchange = plan.coding = std::string(63, 'w');
  plan.predicted.step = 1e9;
  plan.predicted.speed_up = 1e9;
  expect_narrow(format_plan(plan));
  plan.unpredicted = long_one.reason;
  expect_narrow(format_plan(plan));
}

TEST(StatusText, ARunIsOneRowWhateverItsName) {
  schema::RunStatus run = sample_run();
  run.id = "resnet-18-20261123-0228-d002";
  run.state = RunState::kCompleted;
  run.step = run.steps = 1000;
  run.evaluated = true;
  run.evaluation_accuracy = 0.9955;
  const auto row = [&](std::size_t columns) {
    const std::string text = format_runs({run}, kNowMs, columns);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << columns << "\n" << text;
    std::istringstream lines(text);
    std::string line, last;
    for (; std::getline(lines, line); last = line) EXPECT_LE(schema::text_width(line), columns);
    return last;
  };
  EXPECT_EQ(row(120), "resnet-18-20261123-0228-d002  COMPLETED  42s  -     1000/1000  0.1235  99.55 %");
  EXPECT_EQ(row(80), row(120));
  EXPECT_EQ(row(76), "resnet-18-20261123-0228-d002 COMPLETED 42s -    1000/1000 0.1235 99.55 %") << "closer";
  EXPECT_EQ(row(70), "resnet-18-202611~228-d002 COMPLETED 42s -    1000/1000 0.1235 99.55 %");
  run.id = std::string(63, 'r');
  run.steps = run.step = 4'294'967'294;
  for (std::size_t columns = kMinColumns; columns < 200; ++columns) row(columns);
  EXPECT_NE(row(kAnyColumns).find(run.id + "  COMPLETED"), std::string::npos);
}

TEST(StatusText, InAPipeARowIsALineAndNothingIsCut) {
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs[0].id = std::string(63, 'r');
  mesh.runs[0].reason = "node-b was lost in " + std::string(200, 'x') + " of step 4";
  const std::string text = format_mesh(mesh, kNowMs, kAnyColumns);
  EXPECT_NE(text.find("node-b  127.0.0.1:7711  unreachable  nothing answers at 127.0.0.1:7711\n"), std::string::npos);
  EXPECT_NE(text.find("  -  " + mesh.runs[0].reason + "\n"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
  const std::string run = format_run(mesh.runs[0], kNowMs, kAnyColumns);
  EXPECT_NE(run.find("  " + mesh.runs[0].reason + "\n"), std::string::npos) << run;
}

TEST(StatusText, ALostRunDoesNotWidenTheOthers) {
  schema::RunStatus lost = sample_run();
  lost.loss = 16691950848908.0;
  EXPECT_NE(format_runs({lost}, kNowMs).find("  1.67e13  "), std::string::npos);
  EXPECT_EQ(format_fixed(99999.0, 4), "99999.0000");
  EXPECT_EQ(format_fixed(999999.0, 4), "1.00e6");
  EXPECT_EQ(format_fixed(-1e300, 4), "-1.00e300");
  EXPECT_EQ(format_fixed(123456789, 0), "123456789");
}

TEST(StatusText, ReasonsStandBelowTheirRun) {
  schema::RunStatus run = sample_run();
  run.reason = "node-b was lost";
  EXPECT_NE(format_runs({run, sample_run()}, kNowMs).find("  -\n  node-b was lost\nfirst"), std::string::npos);
}

TEST(StatusText, AnInterruptedRunHasTheNextAction) {
  schema::RunStatus run = sample_run();
  run.state = RunState::kInterrupted;
  run.reason = "node-b was shut down";
  run.members[0].states = {900, 600};
  run.members[1].states = {900, 600};
  const std::string way = "node-b was shut down; tgctl resume first continues it";
  EXPECT_EQ(interrupted_text(run), "run first is INTERRUPTED at step 120: " + way);
  EXPECT_NE(format_runs({run}, kNowMs).find(way), std::string::npos) << format_runs({run}, kNowMs);
  std::string text = format_run(run, kNowMs);
  EXPECT_NE(text.find(way), std::string::npos) << text;
  EXPECT_NE(text.find("resume points   900, 600\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("resumed"), std::string::npos) << text;
  run.members[1].states = {600};
  text = format_run(run, kNowMs);
  EXPECT_NE(text.find("resume points   600 (node-a: 900, 600)\n"), std::string::npos) << text;
  run.members[1].states = {};
  run.reason = "";
  text = format_run(run, kNowMs);
  EXPECT_NE(text.find("resume points   900, 600 (node-b: none)\n"), std::string::npos) << "it joins: " << text;
  EXPECT_NE(text.find("  tgctl resume first continues it\n"), std::string::npos) << text;
}

TEST(StatusText, AResumedRunSaysSo) {
  schema::RunStatus run = sample_run();
  run.lineage = 3;
  run.from_step = 100;
  EXPECT_NE(format_run(run, kNowMs).find("2 times, last from step 100\n"), std::string::npos)
      << format_run(run, kNowMs);
  run.lineage = 2;
  EXPECT_NE(format_run(run, kNowMs).find("1 time, last from step 100\n"), std::string::npos);
  EXPECT_EQ(seconds_left(run, kNowMs), 880 * 42.0 / 20) << "at the rate since then";
  run.step = 100;
  EXPECT_FALSE(seconds_left(run, kNowMs));
}

TEST(StatusText, ActiveRunsComeFirst) {
  std::vector<schema::RunStatus> runs(4, sample_run());
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].id = std::to_string(i);
  runs[0].state = runs[1].state = RunState::kCompleted;
  runs[3].state = RunState::kPending;
  sort_active_first(runs);
  std::string order;
  for (const schema::RunStatus& run : runs) order += run.id;
  EXPECT_EQ(order, "2301");
}

TEST(StatusText, RunShowsItsNumbersAndMembers) {
  schema::RunStatus run = sample_run();
  run.state = RunState::kFailed;
  run.reason = "node-b was lost in reduce";
  run.evaluated = true;
  run.evaluation_accuracy = 0.98765;
  EXPECT_NE(format_run(sample_run(), kNowMs).find("RUNNING for 42s, about 5m08s left"), std::string::npos);
  const std::string text = format_run(run, kNowMs);
  for (const char* part : {"FAILED for 42s", "node-b was lost in reduce", "120 of 1000", "98.77 %", "fedcba9876543210",
                           "0.500 codes, 1.500 sent, 93.0 % zeros", "235.5 kB", "node-a  RUNNING", "25 %", "started",
                           "2023-11-14T22:14:00Z", "ended", "2023-11-14T22:14:18Z"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

// The digest is the last one that all members were found to have; a member that is not heard has no state or phase.
TEST(StatusText, TheDigestOfARunThatGoesOnHasItsStep) {
  schema::RunStatus run = sample_run();
  run.digest_step = run.members[0].digest_step = 100;
  run.members[1] = {.node = "node-b", .state = RunState::kRunning, .problem = "does not answer"};
  std::string text = format_run(run, kNowMs);
  EXPECT_NE(text.find("digest          fedcba9876543210, step 100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("MEMBER  STATE    STEP  COMPARED  PHASE                  WAITED FOR\n"
                      "node-a  RUNNING  120   100       backward 12 s of 60 s  25 %\n"
                      "node-b  -        -     -         -                      0 %\n"
                      "  does not answer\n"),
            std::string::npos)
      << text;
  run.state = RunState::kRunning;
  run.members[1] = {.node = "node-b", .state = RunState::kRunning, .save = schema::SaveState::kSaved};
  EXPECT_NE(format_run(run, kNowMs).find("PHASE"), std::string::npos) << "not where it was saved before the resume";
}

TEST(StatusText, TopFiveIsShownWithMoreThanFiveClasses) {
  schema::RunStatus run = sample_run();
  run.evaluated = true;
  run.evaluation_step = 100;
  run.evaluation_accuracy = 0.612;
  run.evaluation_loss = 1.25;
  EXPECT_NE(format_run(run, kNowMs).find("accuracy 61.20 %, loss 1.2500, step 100"), std::string::npos);
  run.evaluation_accuracy_5 = 0.884;
  EXPECT_NE(format_run(run, kNowMs).find("accuracy 61.20 % (top-5 88.40 %), loss 1.2500, step 100"), std::string::npos);
}

TEST(Plan, SaysStepsAndEpochs) {
  schema::StartReply plan;
  plan.steps = 122;
  EXPECT_NE(format_plan(plan).find("steps         122\n"), std::string::npos) << format_plan(plan);
  plan.training_samples = 3904;
  plan.global_batch = 64;
  EXPECT_NE(format_plan(plan).find("122, 2 epochs of 61 steps\n"), std::string::npos) << format_plan(plan);
  plan.steps = 100;
  plan.training_samples = 1000;
  EXPECT_NE(format_plan(plan).find("100, 6.4 epochs of 15.6 steps\n"), std::string::npos) << format_plan(plan);
}

TEST(Plan, AReplayHasNoSpeedUp) {
  schema::StartReply plan;
  plan.members = 4;
  plan.predicted.step = 0.016;
  EXPECT_EQ(format_plan(plan).find("one node"), std::string::npos) << format_plan(plan);
  EXPECT_NE(format_plan(plan).find("nothing, gradients are replayed"), std::string::npos) << format_plan(plan);
  EXPECT_FALSE(speed_up_warning(plan).has_value());
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
  EXPECT_EQ(warning->find("fewer nodes"), std::string::npos) << "all nodes take part in every run: " << *warning;
  plan.predicted.speed_up = 1.2;
  EXPECT_FALSE(speed_up_warning(plan).has_value());
  plan.predicted.speed_up = 1.19;
  EXPECT_TRUE(speed_up_warning(plan).has_value());
  plan.members = 1;
  EXPECT_FALSE(speed_up_warning(plan).has_value()) << "one member has no speed-up";
  EXPECT_NE(format_plan(plan).find("1.19 x over one node"), std::string::npos);
  EXPECT_NE(format_plan(plan).find("bound by        link\n"), std::string::npos) << format_plan(plan);
  plan.members = 4;
  plan.unpredicted = "no peer answered";
  EXPECT_FALSE(speed_up_warning(plan).has_value()) << "no prediction, no warning";
  EXPECT_NE(format_plan(plan).find("no peer answered"), std::string::npos);
  EXPECT_EQ(format_plan(plan).find("over one node"), std::string::npos);
}

TEST(StatusText, ASlowMemberIsMarked) {
  schema::RunStatus run = sample_run();
  run.members[1].state = schema::RunState::kRunning;
  run.members[1].wait_share = schema::kHoldsUpShare;
  EXPECT_EQ(format_run(run, kNowMs).find("holds the run up"), std::string::npos) << "just half";
  run.members[1].wait_share = 0.62;
  EXPECT_NE(format_run(run, kNowMs).find("62 %, holds the run up"), std::string::npos) << format_run(run, kNowMs);
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs = {run};
  const auto json = ordered_json::parse(format_status_json(mesh, kNowMs, 2));
  EXPECT_EQ(json["runs"][0]["members"][0]["holds_up"], false);
  EXPECT_EQ(json["runs"][0]["members"][1]["holds_up"], true);
  run.members[1].state = schema::RunState::kCompleted;
  EXPECT_EQ(format_run(run, kNowMs).find("holds the run up"), std::string::npos) << "it is over";
}

TEST(StatusText, AMemberThatWaitsForDataIsNamed) {
  schema::RunStatus run = sample_run();
  run.members[1].data_wait_share = 0.01;
  EXPECT_EQ(format_run(run, kNowMs).find("waits for data"), std::string::npos) << "below the shown minimum";
  run.members[1].data_wait_share = 0.126;
  const std::string text = format_run(run, kNowMs);
  EXPECT_GT(text.find("\n  waits for data 13 % of its time\n"), text.find("\nnode-b")) << text;
  EXPECT_NE(text.find("\n  waits for data 13 % of its time\n"), std::string::npos) << text;
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs = {run};
  const auto json = ordered_json::parse(format_status_json(mesh, kNowMs, 2));
  EXPECT_EQ(json["runs"][0]["members"][0]["data_wait_share"], 0);
  EXPECT_EQ(json["runs"][0]["members"][1]["data_wait_share"], 0.126);
}

TEST(StatusText, SharesOfABatchAreShownWhereTheyAreUneven) {
  schema::RunStatus run = sample_run();
  schema::StartReply plan;
  plan.global_batch = 50;
  const auto shares = [&](std::uint32_t first, std::uint32_t second) {
    run.members[0].samples = first;
    run.members[1].samples = second;
    plan.shares = {{"node-a", first}, {"node-b", second}};
    plan.local_batch = second;
  };
  shares(26, 25);
  EXPECT_EQ(format_run(run, kNowMs).find("samples/step"), std::string::npos) << "51 do not split evenly";
  EXPECT_NE(format_plan(plan).find("50, at most 26 per member"), std::string::npos);
  shares(38, 12);
  EXPECT_NE(format_run(run, kNowMs).find("samples/step    node-a 38, node-b 12"), std::string::npos);
  EXPECT_NE(format_plan(plan).find("50, split by weight: node-a 38, node-b 12"), std::string::npos);
}

// node-c left at step 100.
schema::RunStatus run_without_c() {
  schema::RunStatus run = sample_run();
  run.view = 2;
  run.view_step = 100;
  run.view_since_ms = kNowMs - 10'000;
  run.departed = {{"node-c", kNowMs - 10'000, 100, "no sign of life from node-c for 5 s"}};
  run.members[1].seniority = 1;
  return run;
}

TEST(StatusText, DepartedMembersAreShownWithStepTimeAndReason) {
  const std::string text = format_run(run_without_c(), kNowMs, kAnyColumns);
  EXPECT_NE(text.find("2, since step 100, 2 of 3 members, most senior: node-b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("node-c  left      100   "), std::string::npos) << text;
  EXPECT_NE(text.find("left at step 100, 2023-11-14T22:14:50Z: no sign of life from node-c for 5 s\n"),
            std::string::npos)
      << text;
  expect_narrow(format_run(run_without_c(), kNowMs));
  EXPECT_NE(format_runs({run_without_c()}, kNowMs).find("\n  2 of 3 members\n"), std::string::npos);
  EXPECT_EQ(format_run(sample_run(), kNowMs).find("view"), std::string::npos);
  schema::MeshStatus mesh = sample_mesh();
  mesh.runs = {run_without_c()};
  const auto run = ordered_json::parse(format_status_json(mesh, kNowMs, -1))["runs"][0];
  EXPECT_EQ(run["view"], 2);
  EXPECT_EQ(run["view_step"], 100);
  EXPECT_EQ(run["view_since"], "2023-11-14T22:14:50Z");
  EXPECT_EQ(run["left"][0]["node"], "node-c");
  EXPECT_EQ(run["left"][0]["step"], 100);
  EXPECT_EQ(run["members"][1]["seniority"], 1);
}

TEST(StatusText, TheTimeLeftIsForThePresentMembers) {
  EXPECT_EQ(seconds_left(run_without_c(), kNowMs), 880 * 10.0 / 20);
  schema::RunStatus run = run_without_c();
  run.step = 100;
  EXPECT_FALSE(seconds_left(run, kNowMs)) << "no step yet";
}

TEST(Progress, NoticesArePrintedOnce) {
  RunNotices notices;
  schema::RunStatus run = sample_run();
  EXPECT_EQ(notices.update(run), "");
  run.state = RunState::kPaused;
  run.reason = "quorum lost: 1 of 2 voters reachable; resumes when node-b returns; `tgctl stop` keeps step 120";
  EXPECT_EQ(notices.update(run), "run first is PAUSED at step 120: " + run.reason);
  EXPECT_EQ(notices.update(run), "");
  run = run_without_c();
  EXPECT_EQ(notices.update(run),
            "run first continues at step 100 with 2 of 3 members: node-c left at step 100: no sign of life from node-c "
            "for 5 s");
  EXPECT_EQ(notices.update(run), "");
  run.view = 3;
  run.view_step = 110;
  EXPECT_EQ(notices.update(run), "run first continues at step 110 with the same members");
  RunNotices late;
  EXPECT_EQ(late.update(run), "") << "an old state is not an event";
  run.state = RunState::kCompleted;
  run.view = 4;
  EXPECT_EQ(notices.update(run), "") << "it is over";
}

TEST(Progress, PausedShowsTheReasonAndNoTimeLeft) {
  ProgressLine progress;
  LineThrottle pace;
  schema::RunStatus run = run_without_c();
  progress.update(run, 0, 80);
  run.step = 130;
  EXPECT_NE(progress.update(run, 2000, 100).find("2m54s left  2 of 3 members  loss"), std::string::npos)
      << progress.update(run, 2000, 100);
  EXPECT_TRUE(pace.due(run, 2000));
  run.state = RunState::kPaused;
  run.reason = "2 of 2 members are away, which nobody can see";
  EXPECT_EQ(progress.update(run, 4000, 80), "PAUSED  step 130/1000  " + run.reason);
  EXPECT_EQ(schema::text_width(progress.update(run, 4000, 40)), 40u);
  EXPECT_FALSE(pace.due(run, 400'000)) << "RunNotices reports it";
  run.state = RunState::kRunning;
  EXPECT_TRUE(pace.due(run, 400'500));
  run.step = 131;
  EXPECT_EQ(progress.update(run, 404'000, 80).find("left"), std::string::npos) << "no rate across a pause";
}

TEST(Progress, LineShowsProgressAndTimeLeft) {
  ProgressLine progress;
  schema::RunStatus run = sample_run();
  run.step = 100;
  EXPECT_EQ(progress.update(run, 0, 80).find("left"), std::string::npos) << "no rate yet";
  run.step = 110;
  run.evaluated = true;
  run.evaluation_accuracy = 0.971;
  EXPECT_EQ(progress.update(run, 5000, 100),
            "RUNNING  step 110/1000  7m25s left  loss 0.1235  accuracy 97.10 %  1234 samples/s");
  run.state = RunState::kCompleted;
  run.step = 1000;
  EXPECT_EQ(progress.update(run, 6000, 80).find("left"), std::string::npos);
}

TEST(Progress, TheTimeLeftIsNeverCut) {
  schema::RunStatus run = sample_run();
  run.steps = 4'294'967'294;
  run.evaluated = true;
  for (std::size_t columns = 60; columns <= 100; ++columns) {
    ProgressLine progress;
    run.step = 1'000'000'000;
    progress.update(run, 0, columns);
    run.step = 1'000'000'100;
    const std::string line = progress.update(run, 5000, columns);
    EXPECT_LE(schema::text_width(line), columns) << line;
    EXPECT_NE(line.find("  1906d left"), std::string::npos) << line;
  }
}

TEST(Progress, EvaluationIsShown) {
  ProgressLine progress;
  LineThrottle pace;
  schema::RunStatus run = sample_run();
  EXPECT_EQ(progress.update(run, 0, 80).find("evaluating"), std::string::npos);
  EXPECT_TRUE(pace.due(run, 0));
  run.members[0].phase = schema::Phase::kEvaluate;
  EXPECT_NE(progress.update(run, 500, 80).find("  evaluating  "), std::string::npos);
  EXPECT_TRUE(pace.due(run, 500)) << "a pipe gets the line too";
  EXPECT_FALSE(pace.due(run, 1000));
}

TEST(Progress, PreparationNamesAwaitedNodes) {
  schema::MeshStatus mesh = sample_mesh();
  schema::RunStatus& run = mesh.runs[0];
  run.state = RunState::kPending;
  EXPECT_EQ(preparing_line(mesh, run, kNowMs, 80),
            "PENDING  42s  waiting for node-b: nothing answers at 127.0.0.1:7711");
  mesh.nodes[1].problem = std::string(300, 'x');
  EXPECT_LE(schema::text_width(preparing_line(mesh, run, kNowMs, 80)), 80u);
  run.state = RunState::kStarting;
  EXPECT_EQ(preparing_line(mesh, run, kNowMs, 80), "STARTING  42s  nodes load data, build engines, measure links");
  run.reason = "node-b reads 1,200 of 60,000 images";
  EXPECT_EQ(preparing_line(mesh, run, kNowMs, 80), "STARTING  42s  node-b reads 1,200 of 60,000 images");
}

TEST(Progress, ADryRunShowsItsNodesActivity) {
  EXPECT_EQ(activity_line("dry run", "node-a reads 7 of 9 images", kNowMs - 3000, kNowMs, 80),
            "dry run  3s  node-a reads 7 of 9 images");
}

TEST(Progress, RateUsesRecentSteps) {
  ProgressLine progress;
  schema::RunStatus run = sample_run();
  run.step = 0;
  progress.update(run, 0, 80);  // a slow minute of start-up
  run.step = 1;
  progress.update(run, 60'000, 80);
  run.step = 101;
  progress.update(run, 70'000, 80);
  run.step = 201;
  EXPECT_NE(progress.update(run, 80'000, 80).find("1m20s left"), std::string::npos);  // 799 steps at 10 a second
}

TEST(Progress, PipesGetALineEveryTenSecondsOrHundredSteps) {
  LineThrottle pace;
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
  EXPECT_EQ(kMeshIncomplete, 8);
  EXPECT_EQ(kTimedOut, 124);
  EXPECT_EQ(kInterrupted, 130);
}

}  // namespace
}  // namespace tg::ctl
